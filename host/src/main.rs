//! The command `wharf`. All of it is in `wharf::cli`.

fn main() -> std::process::ExitCode {
    wharf::cli::main()
}
