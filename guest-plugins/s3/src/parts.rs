//! Encoded bytes, cut into parts.

use wharf_plugin::HostError;

use crate::world::{Bytes, Pieces};

/// Gives parts of one size; the last may be shorter. The first piece, which was taken to see whether the object is small, is a whole
/// number of parts.
#[derive(Debug)]
pub struct Parts<B, P> {
    first: Option<(B, u64)>,
    pieces: P,
    part_size: u64,
}

impl<B: Bytes, P: Pieces<Body = B>> Parts<B, P> {
    /// The first piece, and what comes behind it.
    pub fn new(first: B, pieces: P, part_size: u64) -> Self {
        Self { first: Some((first, 0)), pieces, part_size }
    }

    /// What the parts were cut from.
    pub fn into_pieces(self) -> P {
        self.pieces
    }

    /// The next part.
    ///
    /// # Errors
    /// Where the host cannot encode.
    pub fn next(&mut self) -> Result<Option<B>, HostError> {
        let Some((first, offset)) = self.first.take() else { return self.behind() };
        let left = first.size().saturating_sub(offset);
        if left == 0 {
            return self.behind();
        }
        let part = first.slice(offset, left.min(self.part_size))?;
        if left > self.part_size {
            self.first = Some((first, offset + self.part_size));
        }
        Ok(Some(part))
    }

    fn behind(&mut self) -> Result<Option<B>, HostError> {
        if self.pieces.finished() {
            return Ok(None);
        }
        // Nothing more may come, in which case the piece before was the last.
        Ok(self.pieces.next(self.part_size)?.filter(|piece| piece.size() > 0))
    }
}
