package value

import (
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/runenames"
)

// EscapeError says that an escape sequence in a string literal is malformed.
type EscapeError struct {
	// Start and End are the place of the sequence in the literal, in bytes.
	Start, End int
	// Reason is Python's text, such as "truncated \xXX escape".
	Reason string
}

func (e *EscapeError) Error() string {
	if e.End-e.Start <= 1 {
		return "'unicodeescape' codec can't decode byte 0x5c in position " + strconv.Itoa(e.Start) + ": " + e.Reason
	}
	return "'unicodeescape' codec can't decode bytes in position " + strconv.Itoa(e.Start) + "-" + strconv.Itoa(e.End-1) + ": " + e.Reason
}

// Unescape decodes the escape sequences of a string literal as Python's unicode_escape codec does, but leaves characters
// outside ASCII as they are. Two escapes that are the halves of a surrogate pair give one character. invalid is true when
// there are sequences that mean nothing; these are kept as they are. Errors are [*EscapeError].
func Unescape(s string) (text string, invalid bool, err error) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, false, nil
	}
	b := make([]byte, 0, len(s))
	var half rune // a high surrogate waiting for its other half
	put := func(r rune) {
		switch {
		case half != 0 && r >= 0xdc00 && r < 0xe000:
			b = utf8.AppendRune(b[:len(b)-len("\uFFFD")], (half-0xd800)<<10|(r-0xdc00)+0x10000)
			half = 0
		default:
			b = utf8.AppendRune(b, r)
			half = 0
			if r >= 0xd800 && r < 0xdc00 {
				half = r
			}
		}
	}
	for i := 0; i < len(s); {
		c := s[i]
		if c != '\\' {
			b, half = append(b, c), 0
			i++
			continue
		}
		start := i
		i++
		if i >= len(s) {
			return "", false, &EscapeError{Start: start, End: len(s), Reason: `\ at end of string`}
		}
		c = s[i]
		i++
		switch c {
		case '\n':
			half = 0
		case '\\', '\'', '"':
			b, half = append(b, c), 0
		case 'a':
			b, half = append(b, 7), 0
		case 'b':
			b, half = append(b, 8), 0
		case 't':
			b, half = append(b, 9), 0
		case 'n':
			b, half = append(b, 10), 0
		case 'v':
			b, half = append(b, 11), 0
		case 'f':
			b, half = append(b, 12), 0
		case 'r':
			b, half = append(b, 13), 0
		case '0', '1', '2', '3', '4', '5', '6', '7':
			n := rune(c - '0')
			for k := 0; k < 2 && i < len(s) && s[i] >= '0' && s[i] <= '7'; k++ {
				n = n*8 + rune(s[i]-'0')
				i++
			}
			invalid = invalid || n > 0o377
			put(n)
		case 'x', 'u', 'U':
			size := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
			n, end := hexDigits(s, i, size)
			if end-i < size {
				reason := "truncated \\" + string(c) + strings.Repeat("X", size) + " escape"
				return "", false, &EscapeError{Start: start, End: end, Reason: reason}
			}
			i = end
			if n > unicode.MaxRune {
				return "", false, &EscapeError{Start: start, End: end, Reason: "illegal Unicode character"}
			}
			put(rune(n))
		case 'N':
			if i >= len(s) || s[i] != '{' {
				return "", false, &EscapeError{Start: start, End: i, Reason: `malformed \N character escape`}
			}
			length := strings.IndexByte(s[i:], '}')
			if length < 2 {
				end := len(s)
				if length == 1 {
					end = i + 1
				}
				return "", false, &EscapeError{Start: start, End: end, Reason: `malformed \N character escape`}
			}
			r, ok := RuneByName(s[i+1 : i+length])
			i += length + 1
			if !ok {
				return "", false, &EscapeError{Start: start, End: i, Reason: "unknown Unicode character name"}
			}
			put(r)
		default:
			invalid, half = true, 0
			b = append(b, '\\', c)
		}
	}
	return string(b), invalid, nil
}

func hexDigits(s string, i, limit int) (n uint64, end int) {
	for end = i; end < len(s) && end-i < limit; end++ {
		c := s[end]
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return n, end
		}
		n = n<<4 | uint64(c)
	}
	return n, end
}

// controlNames are the names of characters that Unicode gives as aliases only.
const controlNames = `0 NULL|0 NUL|1 START OF HEADING|1 SOH|2 START OF TEXT|2 STX|3 END OF TEXT|3 ETX|4 END OF TRANSMISSION|4 EOT|` +
	`5 ENQUIRY|5 ENQ|6 ACKNOWLEDGE|6 ACK|7 ALERT|7 BEL|8 BACKSPACE|8 BS|9 CHARACTER TABULATION|9 HORIZONTAL TABULATION|9 HT|9 TAB|` +
	`a LINE FEED|a NEW LINE|a END OF LINE|a LF|a NL|a EOL|b LINE TABULATION|b VERTICAL TABULATION|b VT|c FORM FEED|c FF|` +
	`d CARRIAGE RETURN|d CR|e SHIFT OUT|e LOCKING-SHIFT ONE|e SO|f SHIFT IN|f LOCKING-SHIFT ZERO|f SI|10 DATA LINK ESCAPE|10 DLE|` +
	`11 DEVICE CONTROL ONE|11 DC1|12 DEVICE CONTROL TWO|12 DC2|13 DEVICE CONTROL THREE|13 DC3|14 DEVICE CONTROL FOUR|14 DC4|` +
	`15 NEGATIVE ACKNOWLEDGE|15 NAK|16 SYNCHRONOUS IDLE|16 SYN|17 END OF TRANSMISSION BLOCK|17 ETB|18 CANCEL|18 CAN|` +
	`19 END OF MEDIUM|19 EOM|1a SUBSTITUTE|1a SUB|1b ESCAPE|1b ESC|1c INFORMATION SEPARATOR FOUR|1c FILE SEPARATOR|1c FS|` +
	`1d INFORMATION SEPARATOR THREE|1d GROUP SEPARATOR|1d GS|1e INFORMATION SEPARATOR TWO|1e RECORD SEPARATOR|1e RS|` +
	`1f INFORMATION SEPARATOR ONE|1f UNIT SEPARATOR|1f US|20 SP|7f DELETE|7f DEL|85 NEXT LINE|85 NEL|8d REVERSE LINE FEED|` +
	`9b CONTROL SEQUENCE INTRODUCER|9b CSI|a0 NBSP|ad SHY|200b ZWSP|200c ZWNJ|200d ZWJ|200e LRM|200f RLM|202f NNBSP|` +
	`2060 WJ|feff BYTE ORDER MARK|feff BOM|feff ZWNBSP|1f1e6 REGIONAL INDICATOR SYMBOL LETTER A`

// runesByName is built on the first use of \N{...}, which is rare.
var runesByName = sync.OnceValue(func() map[string]rune {
	names := make(map[string]rune, 40000)
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if name := runenames.Name(r); name != "" && name[0] != '<' {
			names[name] = r
		}
	}
	for entry := range strings.SplitSeq(controlNames, "|") {
		code, name, _ := strings.Cut(entry, " ")
		n, _ := strconv.ParseInt(code, 16, 32)
		names[name] = rune(n)
	}
	return names
})

// RuneByName finds a character by its Unicode name, in any case, as \N{name} does.
func RuneByName(name string) (rune, bool) {
	name = strings.ToUpper(name)
	if hex, ok := strings.CutPrefix(name, "CJK UNIFIED IDEOGRAPH-"); ok {
		n, err := strconv.ParseInt(hex, 16, 32)
		if err != nil || len(hex) < 4 || len(hex) > 5 || !unicode.Is(unicode.Unified_Ideograph, rune(n)) {
			return 0, false
		}
		return rune(n), true
	}
	if syllable, ok := strings.CutPrefix(name, "HANGUL SYLLABLE "); ok {
		return hangul(syllable)
	}
	r, ok := runesByName()[name]
	return r, ok
}

// The short names of the parts of Hangul syllables, in the order in which syllables are numbered.
var (
	hangulInitials = strings.Split("G,GG,N,D,DD,R,M,B,BB,S,SS,,J,JJ,C,K,T,P,H", ",")
	hangulVowels   = strings.Split("A,AE,YA,YAE,EO,E,YEO,YE,O,WA,WAE,OE,YO,U,WEO,WE,WI,YU,EU,YI,I", ",")
	hangulFinals   = strings.Split(",G,GG,GS,N,NJ,NH,D,L,LG,LM,LB,LS,LT,LP,LH,M,B,BS,S,SS,NG,J,C,K,T,P,H", ",")
)

func hangul(syllable string) (rune, bool) {
	for i, initial := range hangulInitials {
		rest, ok := strings.CutPrefix(syllable, initial)
		if !ok {
			continue
		}
		for v, vowel := range hangulVowels {
			final, ok := strings.CutPrefix(rest, vowel)
			if !ok {
				continue
			}
			for f, name := range hangulFinals {
				if final == name {
					return rune(0xac00 + (i*len(hangulVowels)+v)*len(hangulFinals) + f), true
				}
			}
		}
	}
	return 0, false
}
