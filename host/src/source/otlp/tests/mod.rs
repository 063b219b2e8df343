//! Requests as the specification has them, over real sockets.
