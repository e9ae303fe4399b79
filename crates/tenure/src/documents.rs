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
    errors_in_chinese: "docs/errors.zh-CN.md",
    fencing: "docs/fencing.md",
    fencing_in_chinese: "docs/fencing.zh-CN.md",
    settings: "docs/settings.md",
    settings_in_chinese: "docs/settings.zh-CN.md",
    waiting: "docs/waiting.md",
    waiting_in_chinese: "docs/waiting.zh-CN.md",
}
