//! The font and the colours of all pictures.

use plotters::style::RGBColor;

/// The font of all text: the viewer's sans-serif font.
pub const FONT: &str = "sans-serif";

/// The colour of text, axes and rules.
pub const INK: RGBColor = RGBColor(0x33, 0x3a, 0x44);

/// The colours of series. Each can be told from all others without its position.
pub const PALETTE: [RGBColor; 8] = [
    RGBColor(0x2a, 0x9d, 0x8f),
    RGBColor(0x3a, 0x6e, 0xa5),
    RGBColor(0x8e, 0x5f, 0xa8),
    RGBColor(0xe0, 0x9f, 0x3e),
    RGBColor(0xc4, 0x4e, 0x52),
    RGBColor(0x8a, 0x8f, 0x98),
    RGBColor(0x7a, 0x4b, 0x24),
    RGBColor(0x1f, 0x2a, 0x6b),
];

/// The colour of accesses that storage saw.
pub const SEEN: RGBColor = RGBColor(0x55, 0x5d, 0x68);

/// The colour of evictions that storage saw.
pub const EVICTION: RGBColor = PALETTE[3];
