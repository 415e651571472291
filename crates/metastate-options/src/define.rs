//! The two macros that define options.

/// A group of options: the struct, its defaults and its catalogue. Each field is written as `name: Type = default => |e| ...;`, where `e` is its
/// entry in the catalogue (its kind comes from the type, its help from the comment) and the closure adds the rest.
macro_rules! options {
    ($(#[doc = $about:literal])+ $group:ident, $heading:expr, $rules:expr, {
        $($(#[doc = $help:literal])+ $(#[serde($($serde:tt)*)])? $field:ident: $type:ty = $default:expr => $told:expr;)+
    }) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $group {
            $($(#[doc = $help])+ $(#[serde($($serde)*)])? pub $field: $type,)+
        }

        impl Default for $group {
            fn default() -> Self {
                $group { $($field: $default,)+ }
            }
        }

        impl $crate::entry::Options for $group {
            const HEADING: Option<&'static str> = $heading;

            fn entries() -> &'static [$crate::entry::Entry] {
                use $crate::entry::{Entry, told};
                static ALL: std::sync::LazyLock<Vec<Entry>> = std::sync::LazyLock::new(|| {
                    let mut all: Vec<Entry> = Vec::new();
                    $({
                        let add: fn(Entry) -> Entry = $told;
                        all.push(add(Entry::of::<$type>(stringify!($field), &[$($help),+])));
                    })+
                    let defaults = serde_json::to_value($group::default()).unwrap_or_default();
                    for entry in all.iter_mut().filter(|e| e.default.is_none() && !e.required) {
                        entry.default = told(&defaults[entry.key()]);
                    }
                    all
                });
                &ALL
            }

            fn rules(&self) -> Result<(), $crate::error::OptionError> {
                $rules(self)
            }
        }
    };
}

/// The words of an option, each with its meaning.
macro_rules! words {
    ($(#[doc = $about:literal])+ $name:ident { $($(#[doc = $help:literal])+ $variant:ident),+ $(,)? }) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name { $($(#[doc = $help])+ $variant),+ }

        impl $crate::entry::Typed for $name {
            const KIND: $crate::entry::Kind = $crate::entry::Kind::Word;
            fn words() -> Vec<$crate::entry::Word> {
                use $crate::entry::{Word, joined, kebab};
                vec![$(Word { name: kebab(stringify!($variant)), help: joined(&[$($help),+]) }),+]
            }
        }

        impl $name {
            /// As it is typed.
            pub fn word(self) -> String {
                match self { $($name::$variant => $crate::entry::kebab(stringify!($variant))),+ }
            }
        }
    };
}
