package std

import (
	"errors"
	"math"
	"math/big"
	"net/netip"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/intendant/intendant/lang/pyre"
	"github.com/intendant/intendant/lang/value"
	"github.com/intendant/intendant/lazyregexp"
)

// errUnknownType says that validate_type was asked about a type that it does not know.
var errUnknownType = errors.New("unknown type")

// validate reports whether v is of the named Python type, in the sense of pydantic and the standard library.
func validate(name string, v value.Value, params *value.Dict) (bool, error) {
	if check, ok := textChecks[name]; ok {
		s, isText := v.(value.String)
		if !isText {
			return timestampAllowed(name, v), nil
		}
		return check(string(s)), nil
	}
	if params == nil {
		params = &value.Dict{}
	}
	switch name {
	case "pydantic.constr", "pydantic.StrictStr":
		return constrainedText(v, params)
	case "pydantic.conint", "pydantic.StrictInt":
		return constrainedInt(v, params)
	case "pydantic.confloat", "pydantic.condecimal", "pydantic.StrictFloat":
		return constrainedFloat(v, params)
	case "pydantic.StrictBool":
		_, ok := v.(value.Bool)
		return ok, nil
	}
	limits, isFloat, ok := numberLimits(name)
	switch {
	case !ok:
		return false, errUnknownType
	case isFloat:
		return constrainedFloat(v, limits)
	}
	return constrainedInt(v, limits)
}

// numberLimits turns names such as pydantic.NegativeInt into bounds.
func numberLimits(name string) (params *value.Dict, isFloat, ok bool) {
	kind, found := strings.CutPrefix(name, "pydantic.")
	if !found {
		return nil, false, false
	}
	bound := ""
	kind, isInt := strings.CutSuffix(kind, "Int")
	if !isInt {
		kind, isFloat = strings.CutSuffix(kind, "Float")
	}
	switch kind {
	case "Positive":
		bound = "gt"
	case "Negative":
		bound = "lt"
	case "NonNegative":
		bound = "ge"
	case "NonPositive":
		bound = "le"
	}
	if bound == "" || !isInt && !isFloat {
		return nil, false, false
	}
	params = value.NewDict(1)
	params.Set(bound, value.Int(0))
	return params, isFloat, true
}

// textChecks are the types whose values are texts.
var textChecks = map[string]func(string) bool{
	"datetime.date":           isDate,
	"datetime.time":           isTime,
	"datetime.datetime":       isDatetime,
	"uuid.UUID":               isUUID,
	"ipaddress.IPv4Address":   func(s string) bool { return isAddr(s, 4) },
	"ipaddress.IPv6Address":   func(s string) bool { return isAddr(s, 6) },
	"pydantic.IPvAnyAddress":  func(s string) bool { return isAddr(s, 0) },
	"ipaddress.IPv4Interface": func(s string) bool { return isInterface(s, 4, false) },
	"ipaddress.IPv6Interface": func(s string) bool { return isInterface(s, 6, false) },
	"pydantic.IPvAnyInterface": func(s string) bool {
		return isInterface(s, 0, false)
	},
	"ipaddress.IPv4Network":  func(s string) bool { return isInterface(s, 4, true) },
	"ipaddress.IPv6Network":  func(s string) bool { return isInterface(s, 6, true) },
	"pydantic.IPvAnyNetwork": func(s string) bool { return isInterface(s, 0, true) },
	"pydantic.EmailStr":      isEmail,
	"pydantic.NameEmail":     isEmail,
	"pydantic.AnyUrl":        func(s string) bool { _, ok := urlScheme(s); return ok },
	"pydantic.AnyHttpUrl":    isHTTPURL,
	"pydantic.HttpUrl":       func(s string) bool { return len(s) <= 2083 && isHTTPURL(s) },
}

// timestampAllowed covers numbers where a date or an address is expected.
func timestampAllowed(name string, v value.Value) bool {
	switch v.(type) {
	case value.Int, value.Float:
		s := value.Str(v)
		return strings.HasPrefix(name, "datetime.") && textChecks[name](s)
	}
	return false
}

func isAddr(s string, version int) bool {
	_, err := parseAddr(s, version)
	return err == nil
}

func isInterface(s string, version int, strict bool) bool {
	n, err := parseNetwork(s, version)
	return err == nil && (!strict || n.strict())
}

// uuidHyphenated is the usual form of a UUID.
const uuidHyphenated = `[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`

var uuidForms = lazyregexp.New(`^(?:[0-9a-fA-F]{32}|(?:urn:uuid:)?` + uuidHyphenated + `|\{` + uuidHyphenated + `\})$`)

func isUUID(s string) bool { return uuidForms().MatchString(s) }

var (
	datePattern = lazyregexp.New(`^(\d{4})-(\d\d)-(\d\d)`)
	timePattern = lazyregexp.New(`^(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?(?:[Zz]|[+-](\d\d):?(\d\d))?$`)
	stampNumber = lazyregexp.New(`^[+-]?\d+(?:\.\d*)?$`)
)

// splitDate takes a valid date off the start of s.
func splitDate(s string) (rest string, ok bool) {
	m := datePattern().FindStringSubmatch(s)
	if m == nil {
		return "", false
	}
	t, err := time.Parse("2006-01-02", m[0])
	return s[len(m[0]):], err == nil && t.Year() >= 1
}

// timeOfDay checks a time with an optional zone; zero is true at midnight.
func timeOfDay(s string) (zero, ok bool) {
	m := timePattern().FindStringSubmatch(s)
	if m == nil {
		return false, false
	}
	number := func(i int) int {
		n, _ := strconv.Atoi(m[i])
		return n
	}
	if number(1) > 23 || number(2) > 59 || number(3) > 59 || number(5) > 23 || number(6) > 59 {
		return false, false
	}
	return number(1) == 0 && number(2) == 0 && number(3) == 0 && strings.Trim(m[4], "0") == "", true
}

// maxStamp is the last second of the year 9999; larger stamps count milliseconds from watershed on.
const (
	maxStamp       = 253402300799
	minStamp       = -62135596800
	stampWatershed = 2e10
)

// stampSeconds reads a Unix time, in seconds or milliseconds.
func stampSeconds(s string) (seconds float64, ok bool) {
	if !stampNumber().MatchString(s) {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, false
	}
	if math.Abs(f) > stampWatershed {
		f /= 1000
	}
	return f, f >= minStamp && f <= maxStamp
}

func isDate(s string) bool {
	if rest, ok := splitDate(s); ok {
		if rest == "" {
			return true
		}
		zero, ok := timeOfDay(rest[1:])
		return ok && zero && strings.IndexByte("Tt _", rest[0]) >= 0
	}
	seconds, ok := stampSeconds(s)
	return ok && math.Mod(seconds, 86400) == 0
}

func isTime(s string) bool {
	_, ok := timeOfDay(s)
	return ok
}

func isDatetime(s string) bool {
	if rest, ok := splitDate(s); ok {
		if rest == "" {
			return true
		}
		_, ok := timeOfDay(rest[1:])
		return ok && strings.IndexByte("Tt _", rest[0]) >= 0
	}
	_, ok := stampSeconds(s)
	return ok
}

// reservedDomains are the names below which no mailbox can be.
var reservedDomains = map[string]bool{"arpa": true, "invalid": true, "local": true, "localhost": true, "onion": true, "test": true}

var namedEmail = lazyregexp.New(`^\s*(?:("[^"]*"|[^<>"]*?)\s*)<(.+)>\s*$`)

func isEmail(s string) bool {
	if len(s) > 2048 {
		return false
	}
	if m := namedEmail().FindStringSubmatch(s); m != nil {
		if !strings.HasPrefix(m[1], `"`) && strings.ContainsAny(m[1], `,@:;()[]\`) {
			return false
		}
		s = m[2]
	}
	s = strings.Trim(s, " ")
	at := strings.LastIndexByte(s, '@')
	return at > 0 && len(s) <= 254 && isMailbox(s[:at]) && isMailDomain(s[at+1:])
}

func isMailbox(s string) bool {
	for part := range strings.SplitSeq(s, ".") {
		if part == "" {
			return false
		}
		for _, r := range part {
			if r < utf8.RuneSelf && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("!#$%&'*+-/=?^_`{|}~", r) {
				return false
			}
			if r >= utf8.RuneSelf && !unicode.IsPrint(r) {
				return false
			}
		}
	}
	return true
}

func isMailDomain(s string) bool {
	labels := strings.Split(s, ".")
	if len(labels) < 2 || len(s) > 253 {
		return false
	}
	for _, label := range labels {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		if len(label) > 3 && label[2:4] == "--" && !strings.EqualFold(label[:2], "xn") {
			return false
		}
		for _, r := range label {
			if r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.M, r) {
				return false
			}
		}
	}
	last := strings.ToLower(labels[len(labels)-1])
	r, _ := utf8.DecodeLastRuneInString(last)
	return unicode.IsLetter(r) && !reservedDomains[last]
}

var schemePattern = lazyregexp.New(`^([A-Za-z][A-Za-z0-9+.-]*):`)

// specialSchemes are the schemes whose addresses must have a host, except file.
var specialSchemes = map[string]bool{"http": true, "https": true, "ws": true, "wss": true, "ftp": true, "file": true}

// urlScheme checks s by the rules that browsers apply to absolute addresses and gives its scheme.
func urlScheme(s string) (scheme string, ok bool) {
	s = strings.TrimFunc(s, func(r rune) bool { return r <= ' ' })
	s = strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(s)
	m := schemePattern().FindStringSubmatch(s)
	if m == nil {
		return "", false
	}
	scheme = strings.ToLower(m[1])
	rest := s[len(m[0]):]
	special := specialSchemes[scheme]
	switch {
	case scheme == "file":
		rest = strings.ReplaceAll(rest, `\`, "/")
		if !strings.HasPrefix(rest, "//") {
			return scheme, true
		}
		host := cutAt(rest[2:], "/?#")
		return scheme, host == "" || validHost(host, true)
	case special:
		rest = strings.TrimLeft(rest, `/\`)
		host := cutAt(rest, `/\?#`)
		return scheme, validAuthority(host, true)
	case strings.HasPrefix(rest, "//"):
		authority := cutAt(rest[2:], "/?#")
		return scheme, authority == "" || validAuthority(authority, false)
	}
	return scheme, true
}

func cutAt(s, chars string) string {
	if i := strings.IndexAny(s, chars); i >= 0 {
		return s[:i]
	}
	return s
}

func validAuthority(s string, special bool) bool {
	if at := strings.LastIndexByte(s, '@'); at >= 0 {
		s = s[at+1:]
	}
	host, port := s, ""
	if i := strings.LastIndexByte(s, ':'); i >= 0 && !strings.Contains(s[i:], "]") {
		host, port = s[:i], s[i+1:]
	}
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 32)
		if err != nil || n > 65535 {
			return false
		}
	}
	return host != "" && validHost(host, special)
}

func validHost(host string, special bool) bool {
	if strings.HasPrefix(host, "[") {
		inner, ok := strings.CutSuffix(host[1:], "]")
		a, err := netip.ParseAddr(inner)
		return ok && err == nil && a.Is6() && a.Zone() == ""
	}
	if special {
		decoded, ok := percentDecode(host)
		if !ok {
			return false
		}
		host = decoded
	}
	for _, r := range host {
		if r < ' ' || strings.ContainsRune(" #/:<>?@[\\]^|", r) || special && (r == '%' || r == 0x7f) {
			return false
		}
	}
	return !special || validDottedNumbers(host)
}

func percentDecode(s string) (string, bool) {
	var b []byte
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b = append(b, byte(n))
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b), utf8.Valid(b)
}

// validDottedNumbers refuses a host that ends in a number but is no IPv4 address in one of its old notations.
func validDottedNumbers(host string) bool {
	parts := strings.Split(strings.TrimSuffix(host, "."), ".")
	number := func(s string) (uint64, bool) {
		if hex, ok := strings.CutPrefix(strings.ToLower(s), "0x"); ok {
			if hex == "" {
				return 0, true
			}
			n, err := strconv.ParseUint(hex, 16, 64)
			return n, err == nil
		}
		if len(s) > 1 && s[0] == '0' {
			n, err := strconv.ParseUint(s[1:], 8, 64)
			return n, err == nil
		}
		n, err := strconv.ParseUint(s, 10, 64)
		return n, err == nil
	}
	last := parts[len(parts)-1]
	if _, ok := number(last); !ok && (last == "" || strings.Trim(last, "0123456789") != "") {
		return true
	}
	if len(parts) > 4 {
		return false
	}
	for i, part := range parts {
		n, ok := number(part)
		if !ok || i < len(parts)-1 && n > 255 || i == len(parts)-1 && n >= uint64(1)<<(8*(5-len(parts))) {
			return false
		}
	}
	return true
}

func isHTTPURL(s string) bool {
	scheme, ok := urlScheme(s)
	return ok && (scheme == "http" || scheme == "https")
}

// flag reads a boolean parameter.
func flag(params *value.Dict, name string) bool {
	v, _ := params.Get(name)
	b, _ := v.(value.Bool)
	return bool(b)
}

// count reads an integer parameter.
func count(params *value.Dict, name string) (int, bool) {
	v, _ := params.Get(name)
	n, ok := v.(value.Int)
	return int(n), ok
}

func constrainedText(v value.Value, params *value.Dict) (bool, error) {
	s, ok := v.(value.String)
	if !ok {
		return false, nil
	}
	text := string(s)
	if flag(params, "strip_whitespace") {
		text = strings.TrimFunc(text, value.IsSpace)
	}
	length := utf8.RuneCountInString(text)
	if n, ok := count(params, "min_length"); ok && length < n {
		return false, nil
	}
	if n, ok := count(params, "max_length"); ok && length > n {
		return false, nil
	}
	if n, ok := count(params, "curtail_length"); ok && length > n && n >= 0 {
		text = string([]rune(text)[:n])
	}
	for _, name := range []string{"regex", "pattern"} {
		v, _ := params.Get(name)
		pattern, ok := v.(value.String)
		if !ok {
			continue
		}
		re, err := pyre.Compile(string(pattern))
		if err != nil {
			return false, err
		}
		if m, err := re.Match(text); err != nil || m == nil {
			return false, err
		}
	}
	return true, nil
}

func constrainedInt(v value.Value, params *value.Dict) (bool, error) {
	switch x := v.(type) {
	case value.Int, *value.BigInt:
	case value.Bool:
		if flag(params, "strict") {
			return false, nil
		}
	case value.Float:
		if flag(params, "strict") || math.Trunc(float64(x)) != float64(x) || math.IsInf(float64(x), 0) {
			return false, nil
		}
	case value.String:
		n, ok := value.ParseInt(string(x), 10)
		if !ok || flag(params, "strict") {
			return false, nil
		}
		v = n
	default:
		return false, nil
	}
	return withinBounds(v, params)
}

func constrainedFloat(v value.Value, params *value.Dict) (bool, error) {
	switch x := v.(type) {
	case value.Int, *value.BigInt, value.Float:
	case value.Bool:
		if flag(params, "strict") {
			return false, nil
		}
	case value.String:
		f, ok := value.ParseFloat(string(x))
		if !ok || flag(params, "strict") {
			return false, nil
		}
		v = f
	default:
		return false, nil
	}
	ok, err := withinBounds(v, params)
	return ok && withinDigits(v, params), err
}

func withinBounds(v value.Value, params *value.Dict) (bool, error) {
	for _, limit := range [][2]string{{"gt", ">"}, {"ge", ">="}, {"lt", "<"}, {"le", "<="}} {
		op := limit[1]
		bound, ok := params.Get(limit[0])
		if _, null := bound.(value.Null); !ok || null {
			continue
		}
		if good, err := value.Compare(op, v, bound); err != nil || !good {
			return false, err
		}
	}
	step, ok := params.Get("multiple_of")
	if _, null := step.(value.Null); !ok || null {
		return true, nil
	}
	rest, err := value.Arith("%", v, step)
	if err != nil {
		return false, err
	}
	return value.Equal(rest, value.Int(0)), nil
}

// withinDigits checks max_digits and decimal_places on the decimal notation of v.
func withinDigits(v value.Value, params *value.Dict) bool {
	r, ok := new(big.Rat).SetString(value.Str(v))
	if !ok {
		return true
	}
	text := strings.TrimLeft(strings.TrimRight(r.FloatString(30), "0"), "-")
	whole, fraction, _ := strings.Cut(text, ".")
	whole = strings.TrimLeft(whole, "0")
	if n, ok := count(params, "max_digits"); ok && len(whole)+len(fraction) > n {
		return false
	}
	n, ok := count(params, "decimal_places")
	return !ok || len(fraction) <= n
}
