//! Where the types of two functions differ: the way to each first difference, in words.
//!
//! The component model compares types by their structure: field by field, case by case, in order. A record that has one field more is
//! another type, whatever its name is.

use std::collections::HashSet;

use wit_parser::{Function, Handle, Resolve, Type, TypeDefKind, TypeId};

use super::decoded::plain;
use crate::capability::one_line;

/// No honest type is nested deeper.
const DEEPEST: usize = 40;

/// What a part is (a field, a case), and how the place of one is written.
type Naming<'a> = (&'a str, &'a dyn Fn(&str, &str) -> String);

/// Compares functions of a component with those of this host, and collects what differs.
#[derive(Debug)]
pub(super) struct Comparison<'a> {
    found: &'a Resolve,
    own: &'a Resolve,
    /// Named types that were compared: what differs in one of them is told once, however many functions have it.
    compared: HashSet<(TypeId, TypeId)>,
    differences: Vec<String>,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(found: &'a Resolve, own: &'a Resolve) -> Self {
        Self { found, own, compared: HashSet::new(), differences: Vec::new() }
    }

    /// What differs, each with its place.
    pub(super) fn into_differences(self) -> Vec<String> {
        self.differences
    }

    /// Notes something that needs no comparison.
    pub(super) fn note(&mut self, difference: String) {
        self.differences.push(difference);
    }

    /// Compares a function of both.
    pub(super) fn function(&mut self, interface: &str, found: &Function, own: &Function) {
        let place = format!("{interface}.{}", plain(&own.name));
        if found.params.len() == own.params.len() {
            // By position: that is how a call passes them. A name is for people.
            for (f, o) in found.params.iter().zip(&own.params) {
                self.types(&format!("{place}: parameter {:?}", o.name), &f.ty, &o.ty, 0);
            }
        } else {
            self.parameters(&place, found, own);
        }
        match (&found.result, &own.result) {
            (Some(f), Some(o)) => self.types(&format!("{place}: result"), f, o, 0),
            (None, None) => {}
            (f, o) => {
                let shown = |resolve: &Resolve, ty: &Option<Type>| {
                    ty.as_ref().map_or_else(|| "nothing".to_owned(), |ty| show(resolve, ty, 0))
                };
                let (f, o) = (shown(self.found, f), shown(self.own, o));
                self.differ(&format!("{place}: result"), &f, &o);
            }
        }
    }

    /// Another number of parameters: those that only one of them has.
    fn parameters(&mut self, place: &str, found: &Function, own: &Function) {
        for parameter in &own.params {
            match found.params.iter().find(|other| other.name == parameter.name) {
                Some(other) => {
                    self.types(&format!("{place}: parameter {:?}", parameter.name), &other.ty, &parameter.ty, 0)
                }
                None => {
                    let own = show(self.own, &parameter.ty, 0);
                    self.differ(&format!("{place}: parameter {:?}", parameter.name), "no such parameter", &own);
                }
            }
        }
        for parameter in &found.params {
            if !own.params.iter().any(|other| other.name == parameter.name) {
                let found = show(self.found, &parameter.ty, 0);
                let name = one_line(&parameter.name, 100);
                self.differ(&format!("{place}: parameter {name:?}"), &found, "no such parameter");
            }
        }
    }

    fn differ(&mut self, place: &str, found: &str, own: &str) {
        self.differences.push(format!("{place}: the plugin was built with {found}, this host has {own}"));
    }

    /// Compares two types; `place` is the way to them.
    fn types(&mut self, place: &str, found: &Type, own: &Type, depth: usize) {
        let (found, own) = (through(self.found, found), through(self.own, own));
        let ids = match (found, own) {
            (Type::Id(f), Type::Id(o)) => Some((f, o)),
            _ => None,
        };
        let Some((f, o)) = ids else {
            if found != own {
                let (f, o) = (show(self.found, &found, 0), show(self.own, &own, 0));
                self.differ(place, &f, &o);
            }
            return;
        };
        let (Some(found_def), Some(own_def)) = (self.found.types.get(f), self.own.types.get(o)) else { return };
        let name = own_def.name.clone();
        if depth > DEEPEST || (name.is_some() && !self.compared.insert((f, o))) {
            return;
        }
        // The way into a type of its own begins with its name: the same one is reached from many places.
        let inside = |what: &str, part: &str| match &name {
            Some(name) => format!("{place}: {what} {part:?} of {name}"),
            None => format!("{place}: {what} {part:?}"),
        };
        let deeper = depth + 1;
        match (&found_def.kind, &own_def.kind) {
            (TypeDefKind::Record(f), TypeDefKind::Record(o)) => {
                let fields = |fields: &[wit_parser::Field]| -> Vec<(String, Option<Type>)> {
                    fields.iter().map(|field| (field.name.clone(), Some(field.ty))).collect()
                };
                self.parts(place, ("field", &inside), &fields(&f.fields), &fields(&o.fields), deeper);
            }
            (TypeDefKind::Variant(f), TypeDefKind::Variant(o)) => {
                let cases = |cases: &[wit_parser::Case]| -> Vec<(String, Option<Type>)> {
                    cases.iter().map(|case| (case.name.clone(), case.ty)).collect()
                };
                self.parts(place, ("case", &inside), &cases(&f.cases), &cases(&o.cases), deeper);
            }
            (TypeDefKind::Enum(f), TypeDefKind::Enum(o)) => {
                let cases = |cases: &[wit_parser::EnumCase]| -> Vec<(String, Option<Type>)> {
                    cases.iter().map(|case| (case.name.clone(), None)).collect()
                };
                self.parts(place, ("case", &inside), &cases(&f.cases), &cases(&o.cases), deeper);
            }
            (TypeDefKind::Flags(f), TypeDefKind::Flags(o)) => {
                let flags = |flags: &[wit_parser::Flag]| -> Vec<(String, Option<Type>)> {
                    flags.iter().map(|flag| (flag.name.clone(), None)).collect()
                };
                self.parts(place, ("flag", &inside), &flags(&f.flags), &flags(&o.flags), deeper);
            }
            (TypeDefKind::Tuple(f), TypeDefKind::Tuple(o)) if f.types.len() == o.types.len() => {
                for (n, (f, o)) in f.types.iter().zip(&o.types).enumerate() {
                    self.types(&format!("{place}: part {} of the tuple", n + 1), f, o, deeper);
                }
            }
            // The outer type is of the same kind; where the inner one is no type of its own, the whole says more.
            (TypeDefKind::Option(f), TypeDefKind::Option(o)) => self.inner(place, "", (f, o), (&found, &own), deeper),
            (TypeDefKind::List(f), TypeDefKind::List(o)) => {
                self.inner(place, ": each of the list", (f, o), (&found, &own), deeper);
            }
            (TypeDefKind::Result(f), TypeDefKind::Result(o)) => {
                for (what, f, o) in [("ok", &f.ok, &o.ok), ("error", &f.err, &o.err)] {
                    match (f, o) {
                        (Some(f), Some(o)) => self.types(&format!("{place}: {what}"), f, o, deeper),
                        (None, None) => {}
                        (f, o) => {
                            let (f, o) = (payload(self.found, f), payload(self.own, o));
                            self.differ(&format!("{place}: {what}"), &f, &o);
                        }
                    }
                }
            }
            (TypeDefKind::Handle(f), TypeDefKind::Handle(o)) if owned(f) == owned(o) => {
                let (f, o) = (resource(f), resource(o));
                if name_of(self.found, f) != name_of(self.own, o) {
                    let (f, o) = (show(self.found, &found, 0), show(self.own, &own, 0));
                    self.differ(place, &f, &o);
                }
            }
            (TypeDefKind::Resource, TypeDefKind::Resource) if found_def.name == own_def.name => {}
            (TypeDefKind::FixedLengthList(f, n), TypeDefKind::FixedLengthList(o, m)) if n == m => {
                self.types(&format!("{place}: each of the list"), f, o, deeper);
            }
            _ => {
                let (f, o) = (show(self.found, &found, 0), show(self.own, &own, 0));
                self.differ(place, &f, &o);
            }
        }
    }

    /// What is inside `option` or `list`: `inner` of `outer`.
    fn inner(&mut self, place: &str, step: &str, inner: (&Type, &Type), outer: (&Type, &Type), depth: usize) {
        let (f, o) = (through(self.found, inner.0), through(self.own, inner.1));
        match (f, o) {
            (Type::Id(_), Type::Id(_)) => self.types(&format!("{place}{step}"), &f, &o, depth),
            _ if f == o => {}
            _ => {
                let (f, o) = (show(self.found, outer.0, 0), show(self.own, outer.1, 0));
                self.differ(place, &f, &o);
            }
        }
    }

    /// Compares fields, cases or flags, by name; where all are there, also their order.
    fn parts(
        &mut self,
        place: &str,
        (what, inside): Naming<'_>,
        found: &[(String, Option<Type>)],
        own: &[(String, Option<Type>)],
        depth: usize,
    ) {
        let before = self.differences.len();
        for (name, o) in own {
            match found.iter().find(|(other, _)| other == name) {
                None => {
                    let shown = o.map_or_else(|| "it".to_owned(), |o| show(self.own, &o, 0));
                    self.differ(&inside(what, name), &format!("no such {what}"), &shown);
                }
                Some((_, f)) => match (f, o) {
                    (Some(f), Some(o)) => self.types(&inside(what, name), f, o, depth),
                    (None, None) => {}
                    (f, o) => {
                        let (f, o) = (payload(self.found, f), payload(self.own, o));
                        self.differ(&inside(what, name), &f, &o);
                    }
                },
            }
        }
        for (name, f) in found {
            if !own.iter().any(|(other, _)| other == name) {
                let shown = f.map_or_else(|| "it".to_owned(), |f| show(self.found, &f, 0));
                self.differ(&inside(what, &one_line(name, 100)), &shown, &format!("no such {what}"));
            }
        }
        let names = |parts: &[(String, Option<Type>)]| parts.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        let (f, o) = (names(found), names(own));
        if self.differences.len() == before && f != o {
            self.differ(&format!("{place}: order of its {what}s"), &f.join(", "), &o.join(", "));
        }
    }
}

/// What stands behind other names of a type.
fn through(resolve: &Resolve, ty: &Type) -> Type {
    let mut ty = *ty;
    // A name stands for one that was there before: this ends.
    while let Type::Id(id) = ty
        && let Some(TypeDefKind::Type(next)) = resolve.types.get(id).map(|def| &def.kind)
    {
        ty = *next;
    }
    ty
}

fn owned(handle: &Handle) -> bool {
    matches!(handle, Handle::Own(_))
}

fn resource(handle: &Handle) -> TypeId {
    match handle {
        Handle::Own(id) | Handle::Borrow(id) => *id,
    }
}

/// The resource's own name, whatever it is called where it is used.
fn name_of(resolve: &Resolve, id: TypeId) -> Option<String> {
    match through(resolve, &Type::Id(id)) {
        Type::Id(id) => resolve.types.get(id)?.name.clone(),
        _ => None,
    }
}

fn payload(resolve: &Resolve, ty: &Option<Type>) -> String {
    ty.as_ref().map_or_else(|| "nothing there".to_owned(), |ty| show(resolve, ty, 0))
}

/// A type as WIT writes it: one of its own by its name.
pub(in crate::plugin) fn show(resolve: &Resolve, ty: &Type, depth: usize) -> String {
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
    let Some(def) = resolve.types.get(id).filter(|_| depth <= DEEPEST) else { return "…".into() };
    let deeper = depth + 1;
    let inner = |ty: &Type| show(resolve, ty, deeper);
    if let Some(name) = &def.name {
        let name = one_line(name, 100);
        return match &def.kind {
            TypeDefKind::Record(_) => format!("record {name}"),
            TypeDefKind::Variant(_) => format!("variant {name}"),
            TypeDefKind::Enum(_) => format!("enum {name}"),
            _ => name,
        };
    }
    match &def.kind {
        TypeDefKind::Option(ty) => format!("option<{}>", bare(&inner(ty))),
        TypeDefKind::List(ty) => format!("list<{}>", bare(&inner(ty))),
        TypeDefKind::FixedLengthList(ty, n) => format!("list<{}, {n}>", bare(&inner(ty))),
        TypeDefKind::Tuple(tuple) => {
            let parts: Vec<String> = tuple.types.iter().map(|ty| bare(&inner(ty))).collect();
            format!("tuple<{}>", parts.join(", "))
        }
        TypeDefKind::Result(result) => {
            let part = |ty: &Option<Type>| ty.as_ref().map_or_else(|| "_".to_owned(), |ty| bare(&inner(ty)));
            match (&result.ok, &result.err) {
                (None, None) => "result".into(),
                (Some(_), None) => format!("result<{}>", part(&result.ok)),
                _ => format!("result<{}, {}>", part(&result.ok), part(&result.err)),
            }
        }
        TypeDefKind::Handle(Handle::Borrow(id)) => format!("borrow<{}>", bare(&inner(&Type::Id(*id)))),
        TypeDefKind::Handle(Handle::Own(id)) => bare(&inner(&Type::Id(*id))),
        TypeDefKind::Type(ty) => inner(ty),
        other => other.as_str().into(),
    }
}

/// Inside another type its name is enough.
fn bare(shown: &str) -> String {
    let short = ["record ", "variant ", "enum "].iter().find_map(|kind| shown.strip_prefix(kind));
    short.unwrap_or(shown).to_owned()
}
