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

/// A module by hand, after the core specification's chapter 5.
fn core(wit: &Wit) -> Vec<u8> {
    let Wit { resolve, world, .. } = wit;
    let world = &resolve.worlds[*world];
    let (mut types, mut imports, mut functions, mut exports, mut code) = (vec![], vec![], vec![], vec![], vec![]);
    for (module, function) in functions_of(resolve, &world.imports) {
        types.push(of(&resolve.wasm_signature(AbiVariant::GuestImport, function)));
        let ty = number(types.len() - 1);
        imports.push([name(&module), name(&function.name), vec![0], ty].concat());
    }
    let realloc = WasmSignature {
        params: vec![WasmType::I32; 4],
        results: vec![WasmType::I32],
        indirect_params: false,
        retptr: false,
    };
    let exported = functions_of(resolve, &world.exports).into_iter().map(|(interface, function)| {
        (format!("{interface}#{}", function.name), resolve.wasm_signature(AbiVariant::GuestExport, function))
    });
    for (exported, signature) in exported.chain([("cabi_realloc".to_owned(), realloc)]) {
        types.push(of(&signature));
        functions.push(number(types.len() - 1));
        exports.push([name(&exported), vec![0], number(imports.len() + functions.len() - 1)].concat());
        // No locals, `unreachable`, `end`.
        code.push(vec![3, 0, 0, 0x0b]);
    }
    exports.push([name("memory"), vec![2, 0]].concat());
    let mut bytes = b"\0asm\x01\0\0\0".to_vec();
    for (id, items) in [(1, types), (2, imports), (3, functions), (5, vec![vec![0, 1]]), (7, exports), (10, code)] {
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
