//! Functions compiled for the widest vectors of the machine that they run on.
//!
//! `pulp` chooses the instructions when the program runs, but a closure handed to it has them only where the compiler chose to inline it,
//! and a long one it does not: that one runs with the narrow vectors of the oldest machine, and nothing tells. So a kernel is the body of
//! a method that is always inlined, and [`wide`] writes the method.

/// `wide! { fn name<'w>(argument: &'w Type, ...) -> Out { ... } }`: an ordinary function to its callers. What its body calls should be
/// `#[inline(always)]`, too. With `fn name<'w, S, simd>`, S is the set of instructions and `simd` its token, for sums across a vector: the compiler
/// chooses narrow vectors for those.
macro_rules! wide {
    ($(#[$about:meta])* $vis:vis fn $name:ident<$w:lifetime>($($arguments:tt)*) $($rest:tt)*) => {
        wide! { $(#[$about])* $vis fn $name<$w, S, _simd>($($arguments)*) $($rest)* }
    };
    ($(#[$about:meta])* $vis:vis fn $name:ident<$w:lifetime, $set:ident, $simd:ident>($($argument:ident: $type:ty),* $(,)?) $(-> $out:ty)? $body:block) => {
        $(#[$about])*
        $vis fn $name<$w>($($argument: $type),*) $(-> $out)? {
            struct Kernel<$w> {
                $($argument: $type),*
            }
            impl<$w> pulp::WithSimd for Kernel<$w> {
                type Output = wide!(@output $($out)?);

                #[inline(always)]
                fn with_simd<$set: pulp::Simd>(self, $simd: $set) -> Self::Output {
                    let Kernel { $($argument),* } = self;
                    $body
                }
            }
            pulp::Arch::new().dispatch(Kernel { $($argument),* })
        }
    };
    (@output) => { () };
    (@output $out:ty) => { $out };
}

pub(crate) use wide;

/// `a b + c`, rounded once where the machine has an instruction for it. Where it has none, that would be a call into a library.
#[inline(always)]
pub(crate) fn multiply_add<S: pulp::Simd>(a: f64, b: f64, c: f64) -> f64 {
    if S::IS_SCALAR { a * b + c } else { a.mul_add(b, c) }
}
