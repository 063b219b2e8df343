//! Components made on the spot from WIT texts: each function that the world imports is imported, each that it exports traps.

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::abi::{AbiVariant, WasmSignature, WasmType};
use wit_parser::{Function, Resolve, WorldItem};

use crate::plugin::wit::{FILES, Wit};

/// This host's WIT files, with some of their text replaced.
pub(crate) fn wit(replaced: &[(&str, &str)]) -> Wit {
    let mut files: Vec<(&str, String)> = FILES.iter().map(|(name, text)| (*name, (*text).to_owned())).collect();
    for (old, new) in replaced {
        assert!(files.iter().any(|(_, text)| text.contains(old)), "no WIT file has {old:?}");
        for (_, text) in &mut files {
            *text = text.replace(old, new);
        }
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    Wit::parse(&files).unwrap()
}

/// The core module of a world, which knows its interfaces.
pub(crate) fn module(wit: &Wit) -> Vec<u8> {
    let mut bytes = core(wit);
    embed_component_metadata(&mut bytes, &wit.resolve, wit.world, StringEncoding::UTF8, false).unwrap();
    bytes
}

/// The component of a world.
pub(crate) fn component(wit: &Wit) -> Vec<u8> {
    ComponentEncoder::default().validate(true).module(&module(wit)).unwrap().encode().unwrap()
}

/// A component from altered WIT files.
pub(crate) fn component_of(replaced: &[(&str, &str)]) -> Vec<u8> {
    component(&wit(replaced))
}

/// What a component by hand does beyond trapping in each of its exports.
#[derive(Default)]
pub(crate) struct Handmade<'a> {
    /// Code of exports (`describe`, `cabi_realloc`, …), without its end.
    pub(crate) code: &'a [(&'a str, &'a [u8])],
    /// It exports this as well, called after `describe` has given its answer.
    pub(crate) after_describe: Option<&'a [u8]>,
    /// Pages of memory that it begins with, beyond the first.
    pub(crate) more_pages: usize,
    /// What it says that its name's length is, where that is another than it is.
    pub(crate) name_bytes: Option<u32>,
}

/// Where the descriptor of a component by hand lies, and memory that nobody uses.
const DESCRIPTOR: i32 = 1024;
const FREE: i32 = 8192;

/// `i32.const`
pub(crate) fn i32_const(n: i32) -> Vec<u8> {
    // Signed LEB128.
    let (mut n, mut bytes) = (n, vec![0x41]);
    loop {
        let low = u8::try_from(n & 0x7f).unwrap();
        n >>= 7;
        if (n == 0 && low & 0x40 == 0) || (n == -1 && low & 0x40 != 0) {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

/// A component by hand that describes itself, and does what it is told to.
pub(crate) fn handmade(what: &Handmade<'_>) -> Vec<u8> {
    let wit = wit(&[]);
    let (describe, realloc) = (i32_const(DESCRIPTOR), i32_const(FREE));
    let mut code = vec![("describe", describe.as_slice()), ("cabi_realloc", realloc.as_slice())];
    code.extend(what.code);
    let texts: [(&str, u32); 3] = [("handmade", what.name_bytes.unwrap_or(8)), ("1.0.0", 5), ("{}", 2)];
    let (mut descriptor, mut behind): (Vec<u8>, Vec<u8>) = (vec![], vec![]);
    for (text, length) in texts {
        let at = u32::try_from(DESCRIPTOR).unwrap() + 24 + u32::try_from(behind.len()).unwrap();
        descriptor.extend([at.to_le_bytes(), length.to_le_bytes()].concat());
        behind.extend(text.as_bytes());
    }
    descriptor.extend(behind);
    let mut bytes = core_with(&wit, &code, what, Some(&descriptor));
    embed_component_metadata(&mut bytes, &wit.resolve, wit.world, StringEncoding::UTF8, false).unwrap();
    ComponentEncoder::default().validate(true).module(&bytes).unwrap().encode().unwrap()
}

/// A module by hand, after the core specification's chapter 5, which traps in everything.
fn core(wit: &Wit) -> Vec<u8> {
    core_with(wit, &[], &Handmade::default(), None)
}

fn core_with(wit: &Wit, bodies: &[(&str, &[u8])], what: &Handmade<'_>, data: Option<&[u8]>) -> Vec<u8> {
    let Wit { resolve, world, .. } = wit;
    let world = &resolve.worlds[*world];
    let (mut types, mut imports, mut functions, mut exports, mut code) = (vec![], vec![], vec![], vec![], vec![]);
    for (module, function) in functions_of(resolve, &world.imports) {
        types.push(of(&resolve.wasm_signature(AbiVariant::GuestImport, function)));
        let ty = number(types.len() - 1);
        imports.push([name(&module), name(&function.name), vec![0], ty].concat());
    }
    let plain = |params: usize, results: usize| WasmSignature {
        params: vec![WasmType::I32; params],
        results: vec![WasmType::I32; results],
        indirect_params: false,
        retptr: false,
    };
    let exported = functions_of(resolve, &world.exports).into_iter().map(|(interface, function)| {
        (format!("{interface}#{}", function.name), resolve.wasm_signature(AbiVariant::GuestExport, function))
    });
    let after = what.after_describe.map(|_| {
        let (interface, _) = functions_of(resolve, &world.exports).remove(0);
        (format!("cabi_post_{interface}#describe"), plain(1, 0))
    });
    for (exported, signature) in exported.chain([("cabi_realloc".to_owned(), plain(4, 1))]).chain(after) {
        types.push(of(&signature));
        functions.push(number(types.len() - 1));
        exports.push([name(&exported), vec![0], number(imports.len() + functions.len() - 1)].concat());
        let last = exported.rsplit('#').next().unwrap_or(&exported);
        let body = bodies.iter().rev().find(|(name, _)| *name == last).map(|(_, body)| *body);
        let body = what.after_describe.filter(|_| exported.starts_with("cabi_post_")).or(body);
        // No locals, by default `unreachable`, `end`.
        let body = [&[0], body.unwrap_or(&[0]), &[0x0b]].concat();
        code.push([number(body.len()), body].concat());
    }
    exports.push([name("memory"), vec![2, 0]].concat());
    let mut bytes = b"\0asm\x01\0\0\0".to_vec();
    let memory = vec![[vec![0], number(1 + what.more_pages)].concat()];
    // One table of functions, with one element.
    let table = vec![vec![0x70, 0, 1]];
    let data =
        data.map(|data| [vec![0], i32_const(DESCRIPTOR), vec![0x0b], number(data.len()), data.to_vec()].concat());
    let sections = [(1, types), (2, imports), (3, functions), (4, table), (5, memory), (7, exports), (10, code)];
    for (id, items) in sections.into_iter().chain(data.map(|data| (11, vec![data]))) {
        let content = [number(items.len()), items.concat()].concat();
        bytes.extend([vec![id], number(content.len()), content].concat());
    }
    bytes
}

fn functions_of<'a>(
    resolve: &'a Resolve,
    items: impl IntoIterator<Item = (&'a wit_parser::WorldKey, &'a WorldItem)>,
) -> Vec<(String, &'a Function)> {
    let mut functions = vec![];
    for (key, item) in items {
        if let WorldItem::Interface { id, .. } = item {
            let interface = &resolve.interfaces[*id];
            functions.extend(interface.functions.values().map(|function| (resolve.name_world_key(key), function)));
        }
    }
    functions
}

fn of(signature: &WasmSignature) -> Vec<u8> {
    let types = |types: &[WasmType]| -> Vec<u8> {
        let bytes = types.iter().map(|ty| match ty {
            WasmType::I32 | WasmType::Pointer | WasmType::Length => 0x7f,
            WasmType::I64 | WasmType::PointerOrI64 => 0x7e,
            WasmType::F32 => 0x7d,
            WasmType::F64 => 0x7c,
        });
        [number(types.len()), bytes.collect()].concat()
    };
    [vec![0x60], types(&signature.params), types(&signature.results)].concat()
}

fn name(text: &str) -> Vec<u8> {
    [number(text.len()), text.as_bytes().to_vec()].concat()
}

/// LEB128.
fn number(mut n: usize) -> Vec<u8> {
    let mut bytes = vec![];
    loop {
        let low = u8::try_from(n & 0x7f).unwrap();
        n >>= 7;
        if n == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}
