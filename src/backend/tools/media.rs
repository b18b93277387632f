//! Images and documents for Read: stored as blobs, images at a size that models take.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;

use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::{DynamicImage, ImageFormat, ImageReader, Limits};

use crate::message::{Content, Display, Media};
use crate::session::store::Store;

use super::Output;

/// Longest side of an image that providers take without shrinking it, in pixels.
const SIDE: u32 = 1568;

/// Most bytes of an image; base64 makes 5 MB of it.
const BYTES: usize = 3_750_000;

/// Largest files that are read at all.
const IMAGE_FILE: u64 = 64 * 1024 * 1024;
const PDF_FILE: u64 = 32 * 1024 * 1024;

/// A kind of file that the model sees rather than reads, told by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Png,
    Jpeg,
    Gif,
    Webp,
    Pdf,
}

impl Kind {
    pub(super) fn of(start: &[u8]) -> Option<Kind> {
        match start {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Kind::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Kind::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Kind::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Kind::Webp),
            [b'%', b'P', b'D', b'F', b'-', ..] => Some(Kind::Pdf),
            _ => None,
        }
    }

    fn media_type(self) -> &'static str {
        match self {
            Kind::Png => "image/png",
            Kind::Jpeg => "image/jpeg",
            Kind::Gif => "image/gif",
            Kind::Webp => "image/webp",
            Kind::Pdf => "application/pdf",
        }
    }

    fn format(self) -> Option<ImageFormat> {
        match self {
            Kind::Png => Some(ImageFormat::Png),
            Kind::Jpeg => Some(ImageFormat::Jpeg),
            Kind::Gif => Some(ImageFormat::Gif),
            Kind::Webp => Some(ImageFormat::WebP),
            Kind::Pdf => None,
        }
    }
}

/// Reads the rest of a file that began with `start` and stores it.
///
/// # Errors
/// A sentence for the model: too large, damaged, not to be stored.
pub(super) fn read(kind: Kind, path: &Path, file: File, start: Vec<u8>, store: &Store) -> Result<Output, String> {
    let shown = path.display();
    let most = if kind == Kind::Pdf { PDF_FILE } else { IMAGE_FILE };
    let mut bytes = start;
    file.take(most + 1).read_to_end(&mut bytes).map_err(|error| format!("Cannot read {shown}: {error}."))?;
    if bytes.len() as u64 > most {
        return Err(format!("{shown} is larger than {} MiB. Make a smaller copy of it in Bash first.", most >> 20));
    }
    keep_as(kind, &shown.to_string(), bytes, store)
}

/// Stores bytes that did not come from a file, named as told.
///
/// # Errors
/// A sentence for the model: damaged, not a kind that it can see, not to be stored.
pub(super) fn keep(name: &str, bytes: Vec<u8>, store: &Store) -> Result<Output, String> {
    match Kind::of(&bytes) {
        Some(kind) => keep_as(kind, name, bytes, store),
        None => Err(format!("{name}: {} bytes that are neither text nor a picture", bytes.len())),
    }
}

fn keep_as(kind: Kind, shown: &str, bytes: Vec<u8>, store: &Store) -> Result<Output, String> {
    let smaller = match kind.format() {
        Some(format) => {
            shrink(&bytes, format).map_err(|error| format!("{shown} is not an image cocode can display: {error}."))?
        }
        None => None,
    };
    let Shown { media_type, bytes, note } =
        smaller.unwrap_or_else(|| Shown { media_type: kind.media_type(), bytes, note: String::new() });
    let length = bytes.len() as u64;
    let blob = store.put_blob(&bytes).map_err(|error| format!("Cannot store {shown} for the model: {error}."))?;
    let media = Media { media_type: media_type.into(), blob, bytes: length };
    let content = vec![Content::text(format!("{shown} ({media_type}{note})")), Content::Media(media)];
    let line = format!("{media_type}, {} kB", length.div_ceil(1000));
    Ok(Output { content, display: Some(Display::Line { text: line }), ..Output::ok("") })
}

/// What the model gets of a file.
struct Shown {
    media_type: &'static str,
    bytes: Vec<u8>,
    note: String,
}

/// A smaller version of an image that is too large; none when it may stay as it is.
fn shrink(bytes: &[u8], format: ImageFormat) -> Result<Option<Shown>, image::ImageError> {
    let reader = || {
        let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
        let mut limits = Limits::default();
        limits.max_image_width = Some(30_000);
        limits.max_image_height = Some(30_000);
        // A few compressed bytes can claim any size.
        limits.max_alloc = Some(512 * 1024 * 1024);
        reader.limits(limits);
        reader
    };
    let (width, height) = reader().into_dimensions()?;
    if width.max(height) <= SIDE && bytes.len() <= BYTES {
        return Ok(None);
    }
    let mut image = reader().decode()?;
    if width.max(height) > SIDE {
        image = image.resize(SIDE, SIDE, FilterType::Triangle);
    }
    let note = format!(", shown at {}x{} instead of {width}x{height}", image.width(), image.height());
    if format != ImageFormat::Jpeg {
        let mut png = Vec::new();
        image.write_to(&mut Cursor::new(&mut png), ImageFormat::Png)?;
        if png.len() <= BYTES {
            return Ok(Some(Shown { media_type: "image/png", bytes: png, note }));
        }
    }
    let image = DynamicImage::ImageRgb8(image.into_rgb8());
    let mut jpeg = Vec::new();
    // 1568 pixels square stay far below the limit even at the first quality.
    for quality in [85, 60, 30] {
        jpeg.clear();
        JpegEncoder::new_with_quality(&mut jpeg, quality).encode_image(&image)?;
        if jpeg.len() <= BYTES {
            break;
        }
    }
    Ok(Some(Shown { media_type: "image/jpeg", bytes: jpeg, note }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tools::fixture::Fixture;
    use crate::tools::read::Read as ReadTool;

    fn encoded(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Vec::new();
        let image = DynamicImage::new_rgb8(width, height);
        image.write_to(&mut Cursor::new(&mut bytes), format).unwrap();
        bytes
    }

    async fn check(content: Vec<u8>, want: Result<(&str, (u32, u32)), &str>) {
        let mut fixture = Fixture::new();
        fixture.file("a", content);
        let output = fixture.run(&ReadTool, json!({"file_path": "a"})).await;
        let got = match output.content.as_slice() {
            [_, Content::Media(media)] => {
                let bytes = fixture.store.blob(&media.blob).unwrap();
                assert_eq!(bytes.len() as u64, media.bytes);
                let sides = image::load_from_memory(&bytes).map_or((0, 0), |image| (image.width(), image.height()));
                Ok((media.media_type.as_str(), sides))
            }
            _ => Err(fixture.text(&output)),
        };
        match (got, want) {
            (Err(got), Err(want)) => assert!(got.contains(want), "{got}"),
            (got, want) => assert_eq!(got, want.map_err(String::from)),
        }
    }

    #[tokio::test]
    async fn images_and_documents() {
        check(encoded(20, 10, ImageFormat::Png), Ok(("image/png", (20, 10)))).await;
        check(encoded(20, 10, ImageFormat::Jpeg), Ok(("image/jpeg", (20, 10)))).await;
        check(encoded(20, 10, ImageFormat::Gif), Ok(("image/gif", (20, 10)))).await;
        check(encoded(20, 10, ImageFormat::WebP), Ok(("image/webp", (20, 10)))).await;
        check(encoded(3136, 1000, ImageFormat::Png), Ok(("image/png", (1568, 500)))).await;
        check(encoded(200, 2000, ImageFormat::Jpeg), Ok(("image/jpeg", (157, 1568)))).await;
        check(b"%PDF-1.7\n\0binary".to_vec(), Ok(("application/pdf", (0, 0)))).await;
        check(encoded(20, 10, ImageFormat::Png)[..20].to_vec(), Err("is not an image cocode can display")).await;
    }
}
