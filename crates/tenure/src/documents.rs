//! Compiles each Rust snippet of README and `docs/`, as a doc test.

macro_rules! compile {
    ($($name:ident: $path:literal,)*) => {
        $(#[doc = include_str!(concat!("../../../", $path))] mod $name {})*
    };
}

compile! {
    readme: "README.md",
    readme_in_chinese: "README.zh-CN.md",
    errors: "docs/errors.md",
    fencing: "docs/fencing.md",
    settings: "docs/settings.md",
    waiting: "docs/waiting.md",
}
