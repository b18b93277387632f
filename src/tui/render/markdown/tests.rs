//! Markdown at two widths, streamed in any pieces, and hostile.
