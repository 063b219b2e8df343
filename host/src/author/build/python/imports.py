# Written by `wharf plugin build`, which runs it: prints which interfaces of the host the modules of a project import, one a line.
# Arguments: the project's folder, and the name of its main module.

import ast
import pathlib
import sys

folder = pathlib.Path(sys.argv[1])
IMPORTS = "wit_world.imports"


def file_of(module):
    path = folder.joinpath(*module.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return file
    return None


def imported(module, file):
    """Names of modules that this one imports, and of what it takes out of them, which may be modules too."""
    try:
        tree = ast.parse(file.read_bytes())
    except SyntaxError as error:
        sys.exit(f"{file.relative_to(folder)}:{error.lineno}: {error.msg}")
    package = module.split(".") if file.name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join(above + ([node.module] if node.module else []))
            yield origin
            yield from (f"{origin}.{alias.name}" for alias in node.names)


seen = set()
interfaces = set()
remaining = [sys.argv[2]]
while remaining:
    name = remaining.pop()
    if name in seen:
        continue
    seen.add(name)
    if name.startswith(IMPORTS + "."):
        interfaces.add(name[len(IMPORTS) + 1 :].split(".")[0].replace("_", "-"))
    file = file_of(name)
    if file is not None:
        remaining.extend(imported(name, file))
    # A package is imported before what is in it.
    if "." in name:
        remaining.append(name.rpartition(".")[0])
print("\n".join(sorted(interfaces)))
