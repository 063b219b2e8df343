//! Where lines go: straight out, or through a compressor.

use std::io::{self, Write};

use flate2::GzBuilder;
use flate2::write::GzEncoder;

use super::{Compression, WINDOW};

impl Compression {
    /// Bytes compressed as a whole: a function of the bytes and the level alone.
    ///
    /// # Errors
    /// Where the compressor fails.
    pub fn compress(self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut sink = Sink::new(self);
        for window in bytes.chunks(WINDOW) {
            sink.input().extend_from_slice(window);
            sink.fed()?;
        }
        sink.finish()?;
        Ok(sink.take())
    }
}

/// Takes lines, gives bytes.
pub(super) enum Sink {
    Plain(Vec<u8>),
    /// The first is what the compressor has not seen yet.
    Gzip(Vec<u8>, GzEncoder<Vec<u8>>),
    Zstd(Vec<u8>, zstd::Encoder<'static, Vec<u8>>),
    /// The compressor could not be set up.
    Failed(Vec<u8>, Option<io::Error>),
}

impl Sink {
    pub(super) fn new(compression: Compression) -> Self {
        match compression {
            Compression::None => Self::Plain(Vec::new()),
            Compression::Gzip(level) => {
                // Neither time nor system in the header: the same records give the same bytes on any day and any host.
                let header = GzBuilder::new().mtime(0).operating_system(255);
                Self::Gzip(Vec::new(), header.write(Vec::new(), flate2::Compression::new(level.min(9))))
            }
            Compression::Zstd(level) => {
                let encoder = zstd::Encoder::new(Vec::new(), level).and_then(|mut encoder| {
                    encoder.include_checksum(true)?;
                    Ok(encoder)
                });
                match encoder {
                    Ok(encoder) => Self::Zstd(Vec::new(), encoder),
                    Err(error) => Self::Failed(Vec::new(), Some(error)),
                }
            }
        }
    }
    /// Output follows behind what is in `start`. Only while nothing is made.
    pub(super) fn begin(&mut self, mut start: Vec<u8>) {
        let out = self.out();
        // A compressor's header may be waiting.
        start.append(out);
        *out = start;
    }
    /// Where lines are appended; [`Sink::fed`] is called behind that.
    pub(super) fn input(&mut self) -> &mut Vec<u8> {
        match self {
            Self::Plain(lines) | Self::Gzip(lines, _) | Self::Zstd(lines, _) | Self::Failed(lines, _) => lines,
        }
    }
    /// Lines were appended. A compressor gets them once there is a window of them: what it makes can depend on how it is fed,
    /// so that must not depend on when a caller asks.
    pub(super) fn fed(&mut self) -> io::Result<()> {
        if self.input().len() >= WINDOW { self.compress() } else { Ok(()) }
    }
    /// There are no more lines.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.compress()?;
        match self {
            Self::Plain(_) | Self::Failed(..) => Ok(()),
            Self::Gzip(_, encoder) => encoder.try_finish(),
            Self::Zstd(_, encoder) => encoder.do_finish(),
        }
    }
    /// Bytes made since `begin`, those that were there then included.
    pub(super) fn made(&mut self) -> usize {
        self.out().len()
    }
    /// All that was made.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(self.out())
    }

    fn compress(&mut self) -> io::Result<()> {
        let (lines, encoder): (_, &mut dyn Write) = match self {
            Self::Plain(_) => return Ok(()),
            Self::Gzip(lines, encoder) => (lines, encoder),
            Self::Zstd(lines, encoder) => (lines, encoder),
            Self::Failed(_, error) => return Err(error.take().unwrap_or_else(|| io::ErrorKind::Other.into())),
        };
        encoder.write_all(lines)?;
        lines.clear();
        Ok(())
    }
    fn out(&mut self) -> &mut Vec<u8> {
        match self {
            Self::Plain(out) | Self::Failed(out, _) => out,
            Self::Gzip(_, encoder) => encoder.get_mut(),
            Self::Zstd(_, encoder) => encoder.get_mut(),
        }
    }
}
