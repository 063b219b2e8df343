//! The admin server: `GET /health`, `/ready`, `/metrics`.
