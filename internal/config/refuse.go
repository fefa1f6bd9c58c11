package config

import (
	"fmt"
	"strings"
)

// refusal is a key that asks for something whose silent absence would be a
// breach: security, durability, or a rule of the operator.
type refusal struct {
	asks func(value string) bool
	why  string
	fix  string
}

func given(v string) bool { return strings.TrimSpace(v) != "" }

func isTrue(v string) bool { return readBool(v) }

func notPlain(v string) bool { return !strings.EqualFold(strings.TrimSpace(v), "PLAINTEXT") }

var refusals = map[string]refusal{
	"authorizer.class.name": {given, "access control is not available yet, so everybody could read and write everything",
		"drop the key if the network protects this cluster"},
	keyInterProtocol: {notPlain, "PLAINTEXT is the only security protocol available",
		"set it to PLAINTEXT or drop it"},
	"principal.builder.class": {func(v string) bool {
		return given(v) && v != "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
	}, "Java classes cannot be loaded, so callers would not be named by it", "drop the key"},
	"security.providers":          {given, "Java classes cannot be loaded", "drop the key"},
	"delegation.token.secret.key": {given, "delegation tokens are not available", "drop the key"},
	"create.topic.policy.class.name": {given, "Java classes cannot be loaded, so the policy would not be enforced",
		"drop the key"},
	"alter.config.policy.class.name": {given, "Java classes cannot be loaded, so the policy would not be enforced",
		"drop the key"},
	"client.quota.callback.class": {given, "Java classes cannot be loaded, so the quotas would not be enforced",
		"drop the key"},
	"config.providers": {given, "values are not looked up elsewhere, so ${...} would be taken literally",
		"write the values into the file, or pass them with --set"},
	"remote.log.storage.system.enable": {isTrue, "tiered storage is not available, so no segment would be copied to it",
		"set it to false or drop it"},
	keyLogDirs: {severalDirs, "only one data directory is available", "name one directory"},
	keyLogDir:  {severalDirs, "only one data directory is available", "name one directory"},
}

func severalDirs(v string) bool { return len(splitList(v)) > 1 }

// refuse says why a node must not start with this value.
func refuse(key, value string) error {
	r, ok := refusals[key]
	if !ok || !r.asks(value) {
		return nil
	}
	if d, ok := Lookup(BrokerResource, key); ok && d.Sensitive {
		value = "(hidden)"
	}
	return fmt.Errorf("%s=%s is refused, because %s: %s", key, value, r.why, r.fix)
}
