//! More memory than there is.

use std::hint::black_box;

use crate::{Answer, delivered, failed};

const PAGE: usize = 64 << 10;

pub(crate) fn attack(attack: &str) -> Option<Answer> {
    Some(match attack {
        "eat_memory" => {
            let mut eaten = Vec::new();
            loop {
                eaten.push(black_box(vec![1u8; 1 << 20]));
            }
        }
        "grow_at_once" => grow(1 << 30),
        "grow_8_mib" => grow(8 << 20),
        // As one that grew while it could would go on.
        "grow_until_refused" => {
            let mut pages = 0;
            while grown(PAGE) {
                pages += 1;
            }
            failed(format!("grew by {pages} pages"))
        }
        "copy_for_ever" => {
            let (from, mut to) = (black_box(vec![7u8; 4 << 20]), vec![0u8; 4 << 20]);
            loop {
                black_box(&mut to).copy_from_slice(black_box(&from));
            }
        }
        _ => return None,
    })
}

fn grow(bytes: usize) -> Answer {
    if grown(bytes) { delivered() } else { crate::trap("a growth that was refused") }
}

#[cfg(target_arch = "wasm32")]
fn grown(bytes: usize) -> bool {
    core::arch::wasm32::memory_grow(0, bytes.div_ceil(PAGE)) != usize::MAX
}

#[cfg(not(target_arch = "wasm32"))]
fn grown(_: usize) -> bool {
    false
}
