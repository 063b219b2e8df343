//! Following files: what is written to them becomes records, each line once.
//!
//! One thread reads all files of a source in turn, a block at a time. A block, or the few lines of many files, becomes a chunk,
//! which carries each file's position behind its last whole line. So data and position are durable together, and a start
//! goes on where the journal ends.
//!
//! A file is known by device, inode and a fingerprint of its first bytes ([`identity`]), and is read by its open handle to its
//! end, whatever becomes of its name. `docs/sources.md` says what that means for rotation, truncation and deletion.
//!
//! A compressed file is unpacked as it is read ([`compressed`]), after it was found out whether it is one that was read before it was
//! compressed ([`recognise`]).

mod about;
mod absent;
mod compressed;
mod content;
mod followed;
mod gathered;
mod identity;
mod join;
mod origin;
mod patterns;
mod position;
mod reader;
mod recognise;
mod scan;
#[cfg(test)]
mod tests;
mod text;
mod unpack;
mod watch;

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use self::patterns::Patterns;
use self::reader::Reader;
use super::sink::Sink;
use super::{Running, SourceEnded, SourceError};
use crate::config::{SourceConfig, TailConfig};

/// Starts following.
pub(super) fn spawn(
    source: &SourceConfig,
    tail: &TailConfig,
    sink: Arc<dyn Sink>,
    shutdown: CancellationToken,
) -> Result<Running, SourceError> {
    let name = source.name.clone();
    let patterns = Patterns::new(&tail.paths, &tail.exclude).map_err(|(pattern, why)| SourceError::Pattern {
        source_name: name.clone(),
        pattern,
        why,
    })?;
    let reader = Reader::new(source, tail, patterns, sink, shutdown);
    let (end, ended) = oneshot::channel();
    let runtime = reader.runtime.clone();
    let follow = move || {
        let _runtime = runtime.enter();
        reader.run();
        // Nobody may be waiting for it.
        let _ = end.send(());
    };
    // A thread of its own, since it reads files all the time: it would hold up the runtime's.
    std::thread::Builder::new()
        .name(format!("tail {name}"))
        .spawn(follow)
        .map_err(|cause| SourceError::Thread { source_name: name.clone(), cause })?;
    Ok(Running::new(name, async move {
        match ended.await {
            Ok(()) => SourceEnded::Stopped,
            Err(_) => SourceEnded::Failed("its thread ended by a fault in Wharf".to_owned()),
        }
    }))
}

/// A position's value as [`crate::fuzz`] has it read: what is written of it is the same when it is read again.
#[cfg(test)]
pub(crate) fn fuzzed(value: &[u8]) {
    for key in ["1:2", "1:2:3", "was:4:5:6"] {
        if let Ok(position) = position::FilePosition::decode(key, value) {
            let written = position.encode();
            let again = position::FilePosition::decode(key, &written).unwrap();
            assert_eq!(again.encode(), written);
        }
    }
}
