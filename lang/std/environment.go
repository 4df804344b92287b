package std

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/intendant/intendant/lang/value"
)

func environmentPlugins() []*value.Plugin {
	return []*value.Plugin{
		plugin("getfact", "any", getFact, arg("resource", "any"), arg("fact_name", "string"), opt("default_value", "any", value.Null{})),
		plugin("get_env", "string", getEnv, arg("name", "string"), opt("default_value", "string?", value.Null{})),
		deprecated(plugin("get_env_int", "int", getEnvInt, arg("name", "string"), opt("default_value", "int?", value.Null{})), "int(std::get_env(...))"),
		plugin("environment", "string", func(c value.Context, _ []value.Value) (value.Value, error) {
			id, ok := c.Input(value.InputSetting, "environment-id")
			if !ok {
				return nil, errors.New("The environment of this model should be configured in config>environment")
			}
			return value.String(id), nil
		}),
		plugin("environment_name", "string", awaitedSetting("environment-name")),
		plugin("environment_server", "string", awaitedSetting("server-address")),
		plugin("server_ca", "string", setting("server-ca", value.String(""))),
		plugin("server_ssl", "bool", func(c value.Context, _ []value.Value) (value.Value, error) {
			s, _ := c.Input(value.InputSetting, "server-ssl")
			return value.Bool(truthy(s)), nil
		}),
		plugin("server_token", "string", func(c value.Context, a []value.Value) (value.Value, error) {
			var types []string
			for _, t := range items(a[0]) {
				types = append(types, text(t))
			}
			token, _ := c.Input(value.InputSetting, "server-token:"+strings.Join(types, ","))
			return value.String(token), nil
		}, opt("client_types", "string[]", &value.List{Items: []value.Value{value.String("agent")}})),
		plugin("server_port", "int", func(c value.Context, _ []value.Value) (value.Value, error) {
			s, ok := c.Input(value.InputSetting, "server-port")
			if !ok {
				return value.Int(defaultPort), nil
			}
			n, err := strconv.Atoi(s)
			return value.Int(n), err
		}),
		plugin("timestamp", "int", timestamp, opt("dummy", "any", value.Null{})),
		plugin("generate_password", "string", password, arg("pw_id", "string"), opt("length", "int", value.Int(defaultPasswordLength))),
		plugin("password", "string", password, arg("pw_id", "string")),
	}
}

const (
	// defaultPort is the port of the server when no setting says otherwise.
	defaultPort = 8888
	// defaultPasswordLength is the length of passwords when the model does not say.
	defaultPasswordLength = 20
	// maxPasswordLength bounds the length of passwords.
	maxPasswordLength = 4096
)

func truthy(s string) bool {
	switch strings.ToLower(s) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}

// setting gives a setting, or a value in its place.
func setting(name string, missing value.Value) call {
	return func(c value.Context, _ []value.Value) (value.Value, error) {
		if s, ok := c.Input(value.InputSetting, name); ok {
			return value.String(s), nil
		}
		return missing, nil
	}
}

// awaitedSetting gives a setting, or Unknown.
func awaitedSetting(name string) call {
	return func(c value.Context, _ []value.Value) (value.Value, error) {
		if s, ok := c.Input(value.InputSetting, name); ok {
			return value.String(s), nil
		}
		return c.Await(value.InputSetting, name, ""), nil
	}
}

func getFact(c value.Context, a []value.Value) (value.Value, error) {
	i, ok := a[0].(value.Instance)
	if !ok {
		return nil, errors.New("Facts can only be retrieved from resources.")
	}
	id, ok, err := c.Resource(i)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errors.New("Facts can only be retrieved from resources.")
	}
	name := text(a[1])
	if fact, ok := c.Input(value.InputFact, id+"/"+name); ok {
		return value.String(fact), nil
	}
	unknown := c.Await(value.InputFact, name, id)
	if _, null := a[2].(value.Null); !null {
		return a[2], nil
	}
	return unknown, nil
}

func getEnv(c value.Context, a []value.Value) (value.Value, error) {
	if s, ok := c.Input(value.InputEnv, text(a[0])); ok {
		return value.String(s), nil
	}
	if _, null := a[1].(value.Null); !null {
		return a[1], nil
	}
	return c.Await(value.InputEnv, text(a[0]), ""), nil
}

func getEnvInt(c value.Context, a []value.Value) (value.Value, error) {
	v, err := getEnv(c, a)
	if err != nil {
		return nil, err
	}
	if s, ok := v.(value.String); ok {
		n, ok := value.ParseInt(string(s), 10)
		if !ok {
			return nil, fmt.Errorf("invalid literal for int() with base 10: %s", value.Repr(s))
		}
		return n, nil
	}
	if b, ok := v.(value.Bool); ok { // a default that is a number as well
		return value.Cast("int", b)
	}
	return v, nil
}

func timestamp(c value.Context, _ []value.Value) (value.Value, error) {
	s, ok := c.Input(value.InputSetting, "now")
	if !ok {
		return nil, errors.New("the time of this compile is not known")
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return nil, fmt.Errorf("reading the time of this compile: %w", err)
	}
	return value.Int(t.Unix()), nil
}

// alphabet are the characters of passwords.
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// password derives a password from the seed of the compile: the same id always gives the same one, and a shorter one is the
// start of a longer one.
func password(c value.Context, a []value.Value) (value.Value, error) {
	id := text(a[0])
	if strings.Contains(id, "=") {
		return nil, errors.New("The password id cannot contain =")
	}
	length := defaultPasswordLength
	if len(a) > 1 {
		n, err := integer(a[1])
		if err != nil || n > maxPasswordLength {
			return nil, fmt.Errorf("a password can have at most %d characters", maxPasswordLength)
		}
		length = max(n, 0)
	}
	var b []byte
	for round := 0; len(b) < length; round++ {
		for _, r := range c.Random("password:"+id+":"+strconv.Itoa(round), 64) {
			if r &= 63; int(r) < len(alphabet) && len(b) < length {
				b = append(b, alphabet[r])
			}
		}
		if round > maxPasswordLength {
			return nil, errors.New("there is no source of randomness for passwords")
		}
	}
	return value.String(b), nil
}
