//! An output at work: workers that take batches from the queue, when a failed batch is tried again, how a batch ends.
