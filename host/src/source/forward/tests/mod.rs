//! The protocol's corner cases, each with the section of the specification that it comes from; and the source over real sockets, with senders
//! that do exactly what a test says.

mod handshake;
mod pack;
mod secured;
mod sockets;
mod specification;
mod support;
mod torture;
mod values;
