//! The reference of a WIT package, as Markdown for people who may never have seen WIT.

use std::fmt::Write as _;

use wit_parser::{
    Docs, Function, FunctionKind, Handle, Interface, PackageId, Resolve, Result_, Type, TypeDef, TypeDefKind, TypeId,
    TypeOwner, WorldId, WorldItem,
};

const INTRODUCTION: &str = "\
<!-- Written by `cargo xtask docs` from the files in wit/. What is to be changed here is changed there. -->

# Reference

A plugin is a WebAssembly component. It exports one interface, [`output`](#output), which Wharf calls, and imports those below that it needs.
This page is made from the WIT files of this Wharf (`wit/` in the repository, version VERSION), so it is what the host has. The Rust
SDK puts more comfortable types over it; its own documentation says which.

A plugin asks for what it imports, and for nothing else. What reaches out of the host (`s3`, `cloudwatch-logs`, `http`) also needs a grant
of the operator, written in the output's `grants`; a call without one ends with `denied`.

Names below are WIT's. Each language writes them in its own way:

| WIT | Rust | JavaScript | Python | C |
|---|---|---|---|---|
| `put-object` (function) | `put_object` | `putObject` | `put_object` | `wharf_output_s3_put_object` |
| `u64`, `s64` | `u64`, `i64` | `BigInt` | `int` | `uint64_t`, `int64_t` |
| `string` | `String` | string | `str` | `plugin_string_t` (bytes and length) |
| `list<u8>` | `Vec<u8>` | `Uint8Array` | `bytes` | pointer and length |
| `list<T>` | `Vec<T>` | array | `list` | pointer and length |
| `option<T>` | `Option<T>` | `T` or `undefined` | `Optional[T]`, `None` | `is_some` and `val`, or a pointer that may be null |
| `tuple<A, B>` | `(A, B)` | array of two | `tuple` | struct with `f0`, `f1` |
| `result<T, E>` that a function gives | `Result<T, E>` | `T`; an `E` is thrown | `T`; an `E` is raised as `Err` | a `bool`; `T` and `E` behind pointers |
| record | struct | object | data class | struct |
| variant | enum | `{ tag, val }` | one class a case | `tag` and a union |
| enum | enum | string | `Enum` | integer constants |
| resource | struct with methods | class | class | handle with functions |
| `borrow<T>` | `&T` | the object | the object | borrowed handle |
";

/// The whole page. None where the package has something that this does not know.
pub fn of(resolve: &Resolve, package: PackageId, world: WorldId) -> Option<String> {
    let version = resolve.packages.get(package)?.name.version.as_ref()?.to_string();
    let world = resolve.worlds.get(world)?;
    let interface = |item: &WorldItem| match item {
        WorldItem::Interface { id, .. } => resolve.interfaces.get(*id),
        _ => None,
    };
    let exports: Vec<&Interface> = world.exports.values().map(interface).collect::<Option<_>>()?;
    let imports: Vec<&Interface> = world.imports.values().map(interface).collect::<Option<_>>()?;
    let mut page = INTRODUCTION.replace("VERSION", &version);
    page.push_str("\n| interface | | what it is |\n|---|---|---|\n");
    for (interfaces, direction) in [(&exports, "exported by the plugin"), (&imports, "imported from the host")] {
        for interface in interfaces {
            let name = interface.name.as_deref()?;
            let about = first_sentence(&interface.docs);
            writeln!(page, "| [`{name}`](#{name}) | {direction} | {} |", cell(&about)).ok()?;
        }
    }
    for interface in exports.into_iter().chain(imports) {
        Section { resolve, interface: interface.name.as_deref()? }.write(&mut page, interface)?;
    }
    // One empty line is enough, and none at the end.
    while page.contains("\n\n\n") {
        page = page.replace("\n\n\n", "\n\n");
    }
    Some(format!("{}\n", page.trim_end()))
}

struct Section<'a> {
    resolve: &'a Resolve,
    interface: &'a str,
}

impl Section<'_> {
    fn write(&self, page: &mut String, interface: &Interface) -> Option<()> {
        let name = self.interface;
        writeln!(page, "\n## {name}\n").ok()?;
        paragraphs(page, &interface.docs, "");
        let free = |function: &&Function| !function.name.starts_with('[');
        for function in interface.functions.values().filter(free) {
            self.function(page, function, "###")?;
        }
        for (type_name, id) in &interface.types {
            let def = self.resolve.types.get(*id)?;
            match &def.kind {
                // Brought in from another interface under the same name: it is described there.
                TypeDefKind::Type(Type::Id(other))
                    if self.resolve.types.get(*other)?.name.as_deref() == Some(type_name) => {}
                _ => self.type_of_its_own(page, interface, type_name, *id, def)?,
            }
        }
        Some(())
    }

    fn function(&self, page: &mut String, function: &Function, heading: &str) -> Option<()> {
        let name = plain(&function.name);
        let anchor = format!("{}.{name}", self.interface);
        writeln!(page, "<a id=\"{anchor}\"></a>\n\n{heading} `{name}`\n").ok()?;
        let is_method = matches!(function.kind, FunctionKind::Method(_));
        // The object itself is in the heading.
        let parameters = function.params.iter().skip(usize::from(is_method));
        let parameters: Vec<String> =
            parameters.map(|parameter| format!("{}: {}", parameter.name, self.shown(&parameter.ty))).collect();
        let result = function.result.as_ref().map(|ty| format!(" -> {}", self.shown(ty))).unwrap_or_default();
        let short = name.rsplit('.').next()?;
        let one_line = format!("{short}({}){result}", parameters.join(", "));
        let signature = match one_line.chars().count() <= 100 || parameters.is_empty() {
            true => one_line,
            false => {
                format!("{short}(\n{}){result}", parameters.iter().map(|p| format!("  {p},\n")).collect::<String>())
            }
        };
        writeln!(page, "```wit\n{signature}\n```\n").ok()?;
        paragraphs(page, &function.docs, "");
        let mut types = vec![];
        for ty in function
            .params
            .iter()
            .skip(usize::from(is_method))
            .map(|parameter| &parameter.ty)
            .chain(function.result.as_ref())
        {
            self.named(ty, &mut types);
        }
        if !types.is_empty() {
            writeln!(page, "Types: {}.\n", types.join(", ")).ok()?;
        }
        Some(())
    }

    fn type_of_its_own(
        &self,
        page: &mut String,
        interface: &Interface,
        name: &str,
        id: TypeId,
        def: &TypeDef,
    ) -> Option<()> {
        writeln!(page, "<a id=\"{}.{name}\"></a>\n\n### {} `{name}`\n", self.interface, def.kind.as_str()).ok()?;
        paragraphs(page, &def.docs, "");
        match &def.kind {
            TypeDefKind::Record(record) => {
                page.push_str("| field | type | |\n|---|---|---|\n");
                for field in &record.fields {
                    let about = joined(&field.docs);
                    writeln!(page, "| `{}` | {} | {} |", field.name, self.linked(&field.ty), cell(&about)).ok()?;
                }
                page.push('\n');
            }
            TypeDefKind::Variant(variant) => {
                page.push_str("| case | holds | |\n|---|---|---|\n");
                for case in &variant.cases {
                    let holds = case.ty.as_ref().map(|ty| self.linked(ty)).unwrap_or_default();
                    writeln!(page, "| `{}` | {holds} | {} |", case.name, cell(&joined(&case.docs))).ok()?;
                }
                page.push('\n');
            }
            TypeDefKind::Enum(words) => {
                page.push_str("| case | |\n|---|---|\n");
                for case in &words.cases {
                    writeln!(page, "| `{}` | {} |", case.name, cell(&joined(&case.docs))).ok()?;
                }
                page.push('\n');
            }
            TypeDefKind::Resource => {
                let own = interface.functions.values().filter(|function| function.kind.resource() == Some(id));
                for function in own {
                    self.function(page, function, "####")?;
                }
            }
            TypeDefKind::Type(ty) => writeln!(page, "Another name of {}.\n", self.linked(ty)).ok()?,
            _ => return None,
        }
        Some(())
    }

    /// A type as WIT writes it.
    fn shown(&self, ty: &Type) -> String {
        show(self.resolve, ty, &|_, name| name.to_owned())
    }

    /// The same for running text, where each type of its own leads to its description.
    fn linked(&self, ty: &Type) -> String {
        let mut types = vec![];
        self.named(ty, &mut types);
        match types.as_slice() {
            [] => format!("`{}`", self.shown(ty)),
            [one]
                if *one == format!("[`{}`]", self.shown(ty))
                    || one.starts_with(&format!("[`{}`](", self.shown(ty))) =>
            {
                one.clone()
            }
            several => format!("`{}` ({})", self.shown(ty), several.join(", ")),
        }
    }

    /// Links to the types of their own that are in a type, each once.
    fn named(&self, ty: &Type, found: &mut Vec<String>) {
        let links = std::cell::RefCell::new(vec![]);
        show(self.resolve, ty, &|def, name| {
            links.borrow_mut().push(self.link(def, name));
            String::new()
        });
        for link in links.into_inner() {
            if !found.contains(&link) {
                found.push(link);
            }
        }
    }

    fn link(&self, def: &TypeDef, name: &str) -> String {
        let (mut owner, mut behind) = (def, name);
        // Under the same name, from another interface.
        while let TypeDefKind::Type(Type::Id(id)) = &owner.kind
            && let Some(next) = self.resolve.types.get(*id)
            && let Some(next_name) = next.name.as_deref()
            && next_name == behind
        {
            (owner, behind) = (next, next_name);
        }
        let interface = match owner.owner {
            TypeOwner::Interface(id) => self.resolve.interfaces.get(id).and_then(|interface| interface.name.as_deref()),
            _ => None,
        };
        format!("[`{name}`](#{}.{behind})", interface.unwrap_or(self.interface))
    }
}

/// A type as WIT writes it; `own` writes the name of one of its own.
fn show(resolve: &Resolve, ty: &Type, own: &dyn Fn(&TypeDef, &str) -> String) -> String {
    let id = match ty {
        Type::Bool => return "bool".into(),
        Type::U8 => return "u8".into(),
        Type::U16 => return "u16".into(),
        Type::U32 => return "u32".into(),
        Type::U64 => return "u64".into(),
        Type::S8 => return "s8".into(),
        Type::S16 => return "s16".into(),
        Type::S32 => return "s32".into(),
        Type::S64 => return "s64".into(),
        Type::F32 => return "f32".into(),
        Type::F64 => return "f64".into(),
        Type::Char => return "char".into(),
        Type::String => return "string".into(),
        Type::ErrorContext => return "error-context".into(),
        Type::Id(id) => *id,
    };
    let Some(def) = resolve.types.get(id) else { return String::new() };
    if let Some(name) = &def.name {
        return own(def, name);
    }
    let inner = |ty: &Type| show(resolve, ty, own);
    match &def.kind {
        TypeDefKind::Option(ty) => format!("option<{}>", inner(ty)),
        TypeDefKind::List(ty) => format!("list<{}>", inner(ty)),
        TypeDefKind::Tuple(tuple) => format!("tuple<{}>", tuple.types.iter().map(inner).collect::<Vec<_>>().join(", ")),
        TypeDefKind::Result(Result_ { ok: None, err: None }) => "result".into(),
        TypeDefKind::Result(Result_ { ok: Some(ok), err: None }) => format!("result<{}>", inner(ok)),
        TypeDefKind::Result(Result_ { ok, err: Some(err) }) => {
            format!("result<{}, {}>", ok.as_ref().map_or_else(|| "_".to_owned(), inner), inner(err))
        }
        TypeDefKind::Handle(Handle::Borrow(id)) => format!("borrow<{}>", inner(&Type::Id(*id))),
        TypeDefKind::Handle(Handle::Own(id)) => inner(&Type::Id(*id)),
        TypeDefKind::Type(ty) => inner(ty),
        other => other.as_str().into(),
    }
}

/// `[method]batch.id` as `batch.id`.
fn plain(name: &str) -> &str {
    name.rsplit_once(']').map_or(name, |(_, name)| name)
}

/// A doc comment's paragraphs, each on one line.
fn paragraphs(page: &mut String, docs: &Docs, indent: &str) {
    for paragraph in docs.contents.as_deref().unwrap_or_default().split("\n\n") {
        let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        if !line.is_empty() {
            page.push_str(&format!("{indent}{line}\n\n"));
        }
    }
}

fn joined(docs: &Docs) -> String {
    docs.contents.as_deref().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn first_sentence(docs: &Docs) -> String {
    let text = joined(docs);
    match text.split_once(". ") {
        Some((first, _)) => format!("{first}."),
        None => text,
    }
}

/// Text inside a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
