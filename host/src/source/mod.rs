//! Sources take records in: files that grow, standard input, HTTP, and made-up records for trials.
//!
//! Each is a task that parses its input into chunks and hands them to the [`Intake`](crate::intake::Intake). Whoever sent a record is answered only when its
//! chunk is durable. A source stops when its token is cancelled, and then has nothing in hand that it answered for.
