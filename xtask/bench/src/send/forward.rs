//! The forward protocol as Fluent Bit speaks it where `require_ack_response` is on: a chunk of its storage is a PackedForward message with the
//! option `chunk`, and the next one goes out on that connection when `{"ack": chunk}` has come back.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use anyhow::ensure;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use rmp::encode;

use super::{Queue, each_line};

/// Most bytes of the entries of a message: Fluent Bit closes a chunk at 2,048,000.
pub const MESSAGE_BYTES: usize = 2_000_000;

/// 2026-11-30, 12:00 UTC.
const BEGIN_SECONDS: u32 = 1_796_040_000;

/// Lines as messages.
pub fn messages(lines: &[u8], gzip: bool) -> anyhow::Result<Vec<Bytes>> {
    let (mut messages, mut entries, mut count) = (Vec::new(), Vec::new(), 0);
    let mut begin = BEGIN_SECONDS;
    for line in each_line(lines) {
        // The line's entry has 15 bytes around it, 17 with a length of two bytes.
        if entries.len() + line.len() + 17 > MESSAGE_BYTES {
            messages.push(message(messages.len(), &entries, count, gzip)?);
            entries.clear();
            (count, begin) = (0, begin + 1);
        }
        entry(begin, count, line, &mut entries)?;
        count += 1;
    }
    if count > 0 {
        messages.push(message(messages.len(), &entries, count, gzip)?);
    }
    Ok(messages)
}

/// `[EventTime, {"log": line}]`
fn entry(seconds: u32, nanos: u32, line: &[u8], out: &mut Vec<u8>) -> anyhow::Result<()> {
    encode::write_array_len(out, 2)?;
    encode::write_ext_meta(out, 8, 0)?;
    out.extend_from_slice(&seconds.to_be_bytes());
    out.extend_from_slice(&nanos.to_be_bytes());
    encode::write_map_len(out, 1)?;
    encode::write_str(out, "log")?;
    encode::write_str_len(out, line.len() as u32)?;
    out.extend_from_slice(line);
    Ok(())
}

/// `[tag, entries, {"chunk": …, "size": …}]`
fn message(number: usize, entries: &[u8], count: u32, gzip: bool) -> anyhow::Result<Bytes> {
    let mut out = Vec::with_capacity(entries.len() + 128);
    encode::write_array_len(&mut out, 3)?;
    encode::write_str(&mut out, "app")?;
    if gzip {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(entries)?;
        encode::write_bin(&mut out, &encoder.finish()?)?;
    } else {
        encode::write_bin(&mut out, entries)?;
    }
    encode::write_map_len(&mut out, if gzip { 3 } else { 2 })?;
    encode::write_str(&mut out, "chunk")?;
    encode::write_str(&mut out, &chunk(number))?;
    encode::write_str(&mut out, "size")?;
    encode::write_uint(&mut out, count.into())?;
    if gzip {
        encode::write_str(&mut out, "compressed")?;
        encode::write_str(&mut out, "gzip")?;
    }
    Ok(out.into())
}

/// 128 bits in hex.
fn chunk(number: usize) -> String {
    format!("{number:032x}")
}

/// `{"ack": chunk}`
fn ack(number: usize) -> anyhow::Result<Vec<u8>> {
    let mut ack = Vec::new();
    encode::write_map_len(&mut ack, 1)?;
    encode::write_str(&mut ack, "ack")?;
    encode::write_str(&mut ack, &chunk(number))?;
    Ok(ack)
}

/// Sends messages, each when the one before it is acknowledged.
pub fn serve(to: SocketAddr, queue: &Queue<'_>) -> anyhow::Result<()> {
    let mut socket = TcpStream::connect(to)?;
    socket.set_nodelay(true)?;
    while let Some((number, message)) = queue.next() {
        socket.write_all(message)?;
        let expected = ack(number)?;
        let mut answer = vec![0; expected.len()];
        socket.read_exact(&mut answer)?;
        ensure!(answer == expected, "Wharf acknowledged another chunk: {answer:x?}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand, from the specifications of MessagePack and of the forward protocol.
    #[test]
    fn a_message_has_entries_and_a_chunk_that_is_acknowledged() {
        let line = [b'x'; 40];
        let mut entries = vec![0x92, 0xd7, 0x00, 0, 0, 0, 1, 0, 0, 0, 2, 0x81, 0xa3, b'l', b'o', b'g', 0xd9, 40];
        entries.extend(line);
        let mut made = Vec::new();
        entry(1, 2, &line, &mut made).unwrap();
        assert_eq!(made, entries);

        let id = b"00000000000000000000000000000007";
        let expected = [
            &[0x93, 0xa3][..],
            b"app",
            &[0xc4, 58],
            &entries,
            &[0x82, 0xa5],
            b"chunk",
            &[0xd9, 32],
            id,
            &[0xa4],
            b"size",
            &[1],
        ];
        assert_eq!(message(7, &entries, 1, false).unwrap(), expected.concat());
        assert_eq!(ack(7).unwrap(), [&[0x81, 0xa3][..], b"ack", &[0xd9, 32], id].concat());
    }

    #[test]
    fn lines_are_shared_out_over_messages_of_bounded_size() {
        let lines = [[b'y'; 199].as_slice(), b"\n"].concat().repeat(20_000);
        let made = messages(&lines, false).unwrap();
        assert_eq!(made.len(), 3);
        assert!(made.iter().all(|message| message.len() < MESSAGE_BYTES + 128));
        let all = made.concat();
        assert_eq!(all.windows(199).filter(|part| part.iter().all(|byte| *byte == b'y')).count(), 20_000);
    }
}
