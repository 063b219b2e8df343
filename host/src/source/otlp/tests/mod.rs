//! Requests as the specification has them, over bytes and over real sockets.

mod mapping;
mod reading;
mod sockets;
mod support;
