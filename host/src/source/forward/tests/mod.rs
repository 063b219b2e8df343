//! The source over real sockets, with senders that do exactly what a test says.
