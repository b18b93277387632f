//! The read-only list: commands whose every listed option only reads. What is not listed here asks.

use super::{Operands, Reach, Reader};

const fn reader(
    name: &'static str,
    flags: &'static str,
    valued: &'static str,
    long: &'static str,
    operands: Operands,
) -> Reader {
    Reader {
        name,
        flags,
        valued,
        attached: "",
        pathed: "",
        long,
        operands,
        deep: &[],
        below: Reach::Everything,
        wide: ("", ""),
        naming: ("", ""),
        acts: false,
        unsure: false,
    }
}

impl Reader {
    const fn acts(mut self) -> Reader {
        self.acts = true;
        self
    }

    const fn attached(mut self, letters: &'static str) -> Reader {
        self.attached = letters;
        self
    }
}

const GREP: Reader = Reader {
    name: "grep",
    flags: "EFGPiyvwxcLlqsobHhnTZzaUIrR0",
    valued: "emABC",
    attached: "",
    acts: false,
    unsure: false,
    pathed: "f",
    long: "extended-regexp fixed-strings basic-regexp perl-regexp ignore-case no-ignore-case invert-match word-regexp \
           line-regexp count color? colour? files-without-match files-with-matches max-count= only-matching quiet silent \
           no-messages byte-offset with-filename no-filename label= line-number initial-tab null text binary-files= \
           exclude-dir= recursive dereference-recursive after-context= before-context= context= line-buffered \
           null-data regexp= file@ help version",
    operands: Operands::Pattern,
    deep: &["-r", "--recursive", "-R", "--dereference-recursive"],
    below: Reach::Everything,
    wide: ("", ""),
    naming: ("", "include= exclude= exclude-from@"),
};

const SUM: &str = "binary text tag zero help version";

pub(super) const READERS: &[Reader] = &[
    reader(
        "cat",
        "AbeEnstTuv",
        "",
        "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting help version",
        Operands::Paths,
    ),
    reader("tac", "br", "s", "before regex separator= help version", Operands::Paths),
    reader("rev", "", "", "help version", Operands::Paths),
    Reader {
        name: "ls",
        flags: "aAbBcCdfFgGhiklmnNopqQrRsStuUvxXZ1",
        valued: "",
        attached: "ITw",
        acts: false,
        unsure: false,
        pathed: "",
        long: "all almost-all author escape color? classify? full-time group-directories-first human-readable si hide= \
               hyperlink? inode ignore= ignore-backups kibibytes format= size sort= time= time-style= recursive reverse \
               width= quoting-style= file-type directory numeric-uid-gid no-group literal indicator-style= block-size= \
               zero tabsize= context hide-control-chars show-control-chars quote-name help version",
        operands: Operands::Paths,
        deep: &["-R", "--recursive"],
        below: Reach::Names,
        wide: ("", ""),
        naming: ("", ""),
    },
    reader("head", "qvz0", "nc", "lines= bytes= quiet silent verbose zero-terminated help version", Operands::Paths),
    reader(
        "tail",
        "fFqvz0",
        "ncs",
        "lines= bytes= quiet silent verbose zero-terminated follow? retry pid= sleep-interval= help version",
        Operands::Paths,
    ),
    // Not --files0-from: it reads names of files that nobody judged.
    reader("wc", "clmwL", "", "bytes chars lines words max-line-length total= help version", Operands::Paths),
    GREP,
    Reader { name: "egrep", ..GREP },
    Reader { name: "fgrep", ..GREP },
    Reader {
        name: "rg",
        // Not -L (links), -z (runs decompressors), --pre, --hostname-bin.
        flags: "abcFhHiIlnNopPqsSUvVwx0",
        valued: "ABCEejmMrTd",
        attached: "",
        acts: true,
        unsure: false,
        pathed: "f",
        long: "after-context= before-context= context= auto-hybrid-regex block-buffered byte-offset case-sensitive color= \
               colors= column context-separator= count count-matches crlf debug dfa-size-limit= encoding= engine= \
               field-context-separator= field-match-separator= file@ files files-with-matches files-without-match \
               fixed-strings glob-case-insensitive heading ignore-case include-zero \
               invert-match json line-buffered line-number line-regexp max-columns= max-columns-preview max-count= \
               max-depth= max-filesize= mmap multiline multiline-dotall no-config no-filename no-heading no-ignore \
               no-ignore-dot no-ignore-exclude no-ignore-files no-ignore-global no-ignore-parent no-ignore-vcs \
               no-line-number no-messages no-mmap no-unicode null null-data one-file-system only-matching passthru pcre2 \
               pretty quiet regex-size-limit= regexp= replace= smart-case sort= sortr= stats text threads= trace trim \
               type-list type-not= vimgrep with-filename word-regexp help version",
        operands: Operands::PatternDeep,
        deep: &[],
        below: Reach::Visible,
        // A file of ignore rules may name hidden files that are searched even so.
        wide: ("u.", "hidden unrestricted ignore-file@"),
        naming: ("gt", "glob= iglob= type="),
    },
    // Not -o, -T, --compress-program, --files0-from.
    reader(
        "sort",
        "bdfgiMhnRrVcCmsuz",
        "ktS",
        "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort human-numeric-sort numeric-sort random-sort reverse sort= version-sort check? debug key= merge field-separator= stable unique zero-terminated parallel= buffer-size= help version",
        Operands::Paths,
    )
    .acts(),
    reader(
        "uniq",
        "cdDiuz",
        "fsw",
        "count repeated all-repeated? group? ignore-case unique skip-fields= skip-chars= check-chars= zero-terminated help version",
        Operands::OnePath,
    )
    .acts(),
    reader(
        "cut",
        "nsz",
        "bcdf",
        "bytes= characters= delimiter= fields= complement only-delimited output-delimiter= zero-terminated help version",
        Operands::Paths,
    ),
    reader("tr", "cCdst", "", "complement delete squeeze-repeats truncate-set1 help version", Operands::Data),
    // Not -l: it runs pr.
    Reader {
        name: "diff",
        flags: "qsyucebBwitTaNdpEnr0",
        valued: "UCFIWx",
        attached: "",
        acts: true,
        unsure: false,
        pathed: "",
        deep: &["-r", "--recursive"],
        below: Reach::Everything,
        wide: ("", ""),
        naming: ("", ""),
        operands: Operands::Paths,
        long: "recursive brief report-identical-files side-by-side unified? context? ignore-case ignore-all-space ignore-space-change ignore-blank-lines ignore-trailing-space ignore-matching-lines= text width= left-column suppress-common-lines minimal speed-large-files new-file color? strip-trailing-cr label= normal show-c-function exclude= help version",
    },
    reader("cmp", "bls", "in", "print-bytes verbose silent quiet bytes= ignore-initial= help version", Operands::Paths),
    reader(
        "comm",
        "123z",
        "",
        "check-order nocheck-order output-delimiter= total zero-terminated help version",
        Operands::Paths,
    ),
    reader("stat", "fLt", "c", "dereference file-system format= printf= terse help version", Operands::Paths),
    // Not -C, -f, -m, -z, nor -p, which sets times.
    reader(
        "file",
        "bhiknNrE0",
        "F",
        "brief mime mime-type mime-encoding no-dereference dereference separator= keep-going extension help version",
        Operands::Paths,
    )
    .acts(),
    Reader {
        name: "du",
        flags: "abchkmsSx0",
        valued: "dBt",
        attached: "",
        acts: false,
        unsure: false,
        pathed: "",
        long: "all apparent-size bytes total human-readable max-depth= separate-dirs summarize one-file-system threshold= time? \
               time-style= exclude= si count-links null block-size= help version",
        operands: Operands::DeepPaths,
        deep: &[],
        below: Reach::Names,
        wide: ("", ""),
        naming: ("", ""),
    },
    reader(
        "df",
        "ahHiklPT",
        "Btx",
        "all block-size= human-readable si inodes local portability print-type type= exclude-type= total help version",
        Operands::Paths,
    ),
    reader("pwd", "LP", "", "help version", Operands::None),
    reader("which", "as", "", "all help version", Operands::Data),
    reader("type", "afptP", "", "", Operands::Data),
    reader("uname", "asnrmpivo", "", "all help version", Operands::None),
    reader("whoami", "", "", "help version", Operands::None),
    reader("id", "ugGnrz", "", "user group groups name real zero help version", Operands::Data),
    reader("groups", "", "", "help version", Operands::Data),
    reader("nproc", "", "", "all ignore= help version", Operands::None),
    reader("arch", "", "", "help version", Operands::None),
    reader("uptime", "ps", "", "pretty since help version", Operands::None),
    reader("free", "bkmghtw", "", "human mega giga total help version", Operands::None),
    reader("tty", "s", "", "silent quiet help version", Operands::None),
    reader("basename", "az", "s", "multiple suffix= zero help version", Operands::Data),
    reader("dirname", "z", "", "zero help version", Operands::Data),
    reader(
        "realpath",
        "eEmLPqsz",
        "",
        "canonicalize-existing canonicalize-missing logical physical quiet relative-to@ relative-base@ strip no-symlinks zero help version",
        Operands::Paths,
    ),
    reader(
        "readlink",
        "fenmqsvz",
        "",
        "canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero help version",
        Operands::Paths,
    ),
    Reader {
        name: "tree",
        // Not -l (links), -o, -R (writes 00Tree.html).
        flags: "adfxhpsugDFqNQiCnSAJX",
        valued: "LPI",
        attached: "",
        acts: true,
        unsure: false,
        pathed: "",
        long: "dirsfirst noreport gitignore prune du si inodes device help version",
        operands: Operands::DeepPaths,
        deep: &[],
        below: Reach::Names,
        wide: ("", ""),
        naming: ("", ""),
    },
    reader(
        "od",
        "abcdfilosxv",
        "AjNSt",
        "address-radix= skip-bytes= read-bytes= format= strings? output-duplicates width? endian= help version",
        Operands::Paths,
    )
    .attached("w"),
    reader("hexdump", "bcCdovx", "ens", "canonical length= skip= no-squeezing help version", Operands::Paths),
    reader("strings", "afow", "nte", "all bytes= radix= encoding= print-file-name help version", Operands::Paths)
        .acts(),
    // Not -c: it reads names of files that nobody judged.
    reader("md5sum", "btz", "", SUM, Operands::Paths),
    reader("sha1sum", "btz", "", SUM, Operands::Paths),
    reader("sha256sum", "btz", "", SUM, Operands::Paths),
    reader("sha512sum", "btz", "", SUM, Operands::Paths),
    reader("shasum", "bt", "a", "algorithm= binary text", Operands::Paths),
    reader("sha224sum", "btz", "", SUM, Operands::Paths),
    reader("sha384sum", "btz", "", SUM, Operands::Paths),
    reader("b2sum", "btz", "l", SUM, Operands::Paths),
    reader("sum", "rs", "", "sysv help version", Operands::Paths),
    // Not -o, which writes on some systems.
    reader("base64", "di", "w", "decode ignore-garbage wrap= help version", Operands::Paths).acts(),
    reader("base32", "di", "w", "decode ignore-garbage wrap= help version", Operands::Paths),
    reader("cksum", "", "", "help version", Operands::Paths),
    reader("nl", "p", "bdfhilnsvw", "body-numbering= number-width= number-separator= help version", Operands::Paths),
    reader("fmt", "cstu", "w", "split-only uniform-spacing width= help version", Operands::Paths),
    reader("fold", "bs", "w", "bytes spaces width= help version", Operands::Paths),
    reader("expand", "i", "t", "initial tabs= help version", Operands::Paths),
    reader("paste", "sz", "d", "serial delimiters= zero-terminated help version", Operands::Paths),
    reader("join", "iz", "aejotv12", "ignore-case header check-order nocheck-order help version", Operands::Paths),
    reader(
        "column",
        "txe",
        "socNRH",
        "table separator= output-separator= table-columns= help version",
        Operands::Paths,
    ),
    reader("seq", "w", "fs", "format= separator= equal-width help version", Operands::Data),
    reader("expr", "", "", "help version", Operands::Data),
    reader("factor", "", "", "help version", Operands::Data),
    reader("getconf", "", "", "", Operands::Data),
    reader("lscpu", "", "", "help version", Operands::None),
    reader("locale", "a", "", "all-locales help version", Operands::Data),
    reader("pgrep", "acflnovwx", "uPg", "count full list-name list-full newest oldest help version", Operands::Data),
    reader("whereis", "bms", "", "", Operands::Data),
    // Not -o and --random-source.
    reader(
        "shuf",
        "erz",
        "in",
        "echo repeat zero-terminated head-count= input-range= help version",
        Operands::Paths,
    )
    .acts(),
    reader(
        "numfmt",
        "z",
        "d",
        "debug delimiter= field= format= from= from-unit= grouping header? invalid= padding= round= suffix= to= to-unit= zero-terminated help version",
        Operands::Data,
    ),
    reader("sleep", "", "", "help version", Operands::Data),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_listed_once() {
        let mut names: Vec<_> = READERS.iter().map(|reader| reader.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
