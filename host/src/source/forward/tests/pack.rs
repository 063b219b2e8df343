//! MessagePack for tests, by another hand than the one that is tested.

use rmp::encode as pack;

pub(super) fn nil() -> Vec<u8> {
    vec![0xc0]
}
pub(super) fn boolean(value: bool) -> Vec<u8> {
    written(|out| pack::write_bool(out, value).unwrap())
}
pub(super) fn int(value: i64) -> Vec<u8> {
    written(|out| _ = pack::write_sint(out, value).unwrap())
}
pub(super) fn uint(value: u64) -> Vec<u8> {
    written(|out| _ = pack::write_uint(out, value).unwrap())
}
pub(super) fn single(value: f32) -> Vec<u8> {
    written(|out| pack::write_f32(out, value).unwrap())
}
pub(super) fn double(value: f64) -> Vec<u8> {
    written(|out| pack::write_f64(out, value).unwrap())
}
pub(super) fn text(value: &str) -> Vec<u8> {
    written(|out| pack::write_str(out, value).unwrap())
}
/// A str of any bytes.
pub(super) fn raw_text(value: &[u8]) -> Vec<u8> {
    written(|out| {
        pack::write_str_len(out, value.len() as u32).unwrap();
        out.extend_from_slice(value);
    })
}
pub(super) fn binary(value: &[u8]) -> Vec<u8> {
    written(|out| pack::write_bin(out, value).unwrap())
}
pub(super) fn ext(kind: i8, value: &[u8]) -> Vec<u8> {
    written(|out| {
        pack::write_ext_meta(out, value.len() as u32, kind).unwrap();
        out.extend_from_slice(value);
    })
}
pub(super) fn list(values: &[Vec<u8>]) -> Vec<u8> {
    written(|out| {
        pack::write_array_len(out, values.len() as u32).unwrap();
        out.extend(values.iter().flatten());
    })
}
pub(super) fn map(pairs: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    written(|out| {
        pack::write_map_len(out, pairs.len() as u32).unwrap();
        out.extend(pairs.iter().flat_map(|(key, value)| [key, value]).flatten());
    })
}

/// `{"log": TEXT}`
pub(super) fn record(log: &str) -> Vec<u8> {
    map(&[(text("log"), text(log))])
}
/// An EventTime as fixext8.
pub(super) fn event_time(seconds: u32, nanos: u32) -> Vec<u8> {
    ext(0, &[seconds.to_be_bytes(), nanos.to_be_bytes()].concat())
}
/// `[time, {"log": TEXT}]`
pub(super) fn entry(seconds: i64, log: &str) -> Vec<u8> {
    list(&[int(seconds), record(log)])
}
/// `{"chunk": TEXT}`
pub(super) fn wants_ack(chunk: &str) -> Vec<u8> {
    map(&[(text("chunk"), text(chunk))])
}
/// `{"ack": TEXT}`
pub(super) fn ack(chunk: &str) -> Vec<u8> {
    map(&[(text("ack"), text(chunk))])
}
/// A message of one event, with an acknowledgement.
pub(super) fn asked(tag: &str, log: &str, chunk: &str) -> Vec<u8> {
    list(&[text(tag), int(1), record(log), wants_ack(chunk)])
}
/// The same without.
pub(super) fn told(tag: &str, log: &str) -> Vec<u8> {
    list(&[text(tag), int(1), record(log)])
}

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
pub(super) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}
