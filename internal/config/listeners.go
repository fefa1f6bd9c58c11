package config

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
)

// The security protocols that Kafka knows; all but the first are refused.
var protocols = []string{"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}

// ParseListener reads NAME://HOST:PORT. HOST may be empty for every interface,
// or an IPv6 address in brackets.
func ParseListener(s string) (Listener, error) {
	name, address, ok := strings.Cut(strings.TrimSpace(s), "://")
	host, port, err := splitAddress(address)
	if !ok || name == "" || err != nil {
		return Listener{}, fmt.Errorf("%q is not NAME://HOST:PORT", s)
	}
	return Listener{Name: strings.ToUpper(name), Host: host, Port: port}, nil
}

// splitAddress cuts HOST:PORT.
func splitAddress(s string) (host string, port uint16, err error) {
	host, digits, err := net.SplitHostPort(strings.TrimSpace(s))
	if err != nil {
		return "", 0, fmt.Errorf("%q is not HOST:PORT", s)
	}
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || strings.ContainsAny(host, " /@,") {
		return "", 0, fmt.Errorf("%q is not HOST:PORT with a port from 0 to 65535", s)
	}
	return host, uint16(n), nil
}

// String prints the listener as the listeners key has it.
func (l Listener) String() string { return l.Name + "://" + l.Address() }

// Address is HOST:PORT, as a dialler or listener takes it.
func (l Listener) Address() string { return net.JoinHostPort(l.Host, strconv.Itoa(int(l.Port))) }

// parseListeners reads a list of listeners; names, and ports but 0, must differ.
func parseListeners(key, value string, samePort bool) ([]Listener, error) {
	var out []Listener
	names, ports := map[string]bool{}, map[string]bool{}
	for _, item := range splitList(value) {
		l, err := ParseListener(item)
		if err != nil {
			return nil, fmt.Errorf("%s=%s is not valid: %w", key, value, err)
		}
		if names[l.Name] {
			return nil, fmt.Errorf("%s=%s is not valid: give the name %s to one listener only", key, value, l.Name)
		}
		at := l.Address()
		if ports[at] && l.Port != 0 && !samePort {
			return nil, fmt.Errorf("%s=%s is not valid: %s is there twice, give each listener its own port", key, value, at)
		}
		names[l.Name], ports[at] = true, true
		out = append(out, l)
	}
	return out, nil
}

// setListeners sorts the listeners into the broker's and the controller's, and
// refuses every one that is not PLAINTEXT.
func (c *Config) setListeners(values map[string]string) error {
	all, err := parseListeners(keyListeners, value(values, keyListeners), false)
	if err != nil {
		return err
	}
	for _, name := range splitList(values[keyControllerNames]) {
		c.ControllerListenerNames = append(c.ControllerListenerNames, strings.ToUpper(name))
	}
	if len(c.ControllerListenerNames) == 0 {
		return fmt.Errorf("%s is missing: set it to the name of the controllers' listener, such as CONTROLLER", keyControllerNames)
	}
	if err := checkProtocols(all, c.ControllerListenerNames, values); err != nil {
		return err
	}
	for _, l := range all {
		if slices.Contains(c.ControllerListenerNames, l.Name) {
			c.ControllerListeners = append(c.ControllerListeners, l)
		} else {
			c.Listeners = append(c.Listeners, l)
		}
	}
	if err := c.checkRoles(values); err != nil {
		return err
	}
	if err := c.setAdvertised(values); err != nil {
		return err
	}
	return c.setInterBroker(values)
}

// value reads a key or its default.
func value(values map[string]string, key string) string {
	if v, ok := values[key]; ok {
		return v
	}
	if d, ok := Lookup(BrokerResource, key); ok && d.Default != nil {
		return *d.Default
	}
	return ""
}

// checkProtocols refuses a listener, or a controller listener that this node
// would dial, whose security protocol is not PLAINTEXT.
func checkProtocols(all []Listener, controllers []string, values map[string]string) error {
	byName := map[string]string{}
	for _, item := range splitList(value(values, keySecurityMap)) {
		name, protocol, ok := strings.Cut(item, ":")
		protocol = strings.ToUpper(strings.TrimSpace(protocol))
		if !ok || !slices.Contains(protocols, protocol) {
			return fmt.Errorf("%s=%s is not valid: %q is not NAME:PROTOCOL with one of %s",
				keySecurityMap, values[keySecurityMap], item, strings.Join(protocols, ", "))
		}
		byName[strings.ToUpper(strings.TrimSpace(name))] = protocol
	}
	names := slices.Clone(controllers)
	for _, l := range all {
		names = append(names, l.Name)
	}
	for _, name := range names {
		protocol, ok := byName[name]
		_, explicit := values[keySecurityMap]
		switch {
		case !ok && !explicit && slices.Contains(controllers, name):
			// Kafka takes an unmapped controller listener for PLAINTEXT.
		case !ok:
			return fmt.Errorf("the listener %s has no security protocol: add %s:PLAINTEXT to %s", name, name, keySecurityMap)
		case protocol != "PLAINTEXT":
			return fmt.Errorf("the listener %s has the security protocol %s, but PLAINTEXT is the only one available yet: map it to PLAINTEXT in %s if the network protects this cluster",
				name, protocol, keySecurityMap)
		}
	}
	return nil
}

// checkRoles says whether the listeners fit the roles.
func (c *Config) checkRoles(values map[string]string) error {
	listeners := value(values, keyListeners)
	switch {
	case c.Controller && len(c.ControllerListeners) == 0:
		return fmt.Errorf("%s=%s has no listener for the controller: add %s://HOST:PORT", keyListeners, listeners, c.ControllerListenerNames[0])
	case !c.Controller && len(c.ControllerListeners) > 0:
		return fmt.Errorf("%s=%s has the controllers' listener %s, but %s=%s is no controller: drop it",
			keyListeners, listeners, c.ControllerListeners[0].Name, keyRoles, values[keyRoles])
	case c.Broker && len(c.Listeners) == 0:
		return fmt.Errorf("%s=%s has no listener for the broker: add PLAINTEXT://HOST:PORT", keyListeners, listeners)
	case !c.Broker && len(c.Listeners) > 0:
		return fmt.Errorf("%s=%s has the listener %s, which is not in %s: a node that is only a controller has no other listeners",
			keyListeners, listeners, c.Listeners[0].Name, keyControllerNames)
	}
	return nil
}

// setAdvertised fills what clients are told: advertised.listeners, or the
// listeners with this host's name where they name none.
func (c *Config) setAdvertised(values map[string]string) error {
	given, err := parseListeners(keyAdvertised, values[keyAdvertised], true)
	if err != nil {
		return err
	}
	for _, l := range given {
		switch {
		case slices.Contains(c.ControllerListenerNames, l.Name) && hasName(c.ControllerListeners, l.Name):
			c.ControllerAdvertised = append(c.ControllerAdvertised, l)
		case hasName(c.Listeners, l.Name):
			c.Advertised = append(c.Advertised, l)
		default:
			return fmt.Errorf("%s=%s names %s, which is not in %s: add it there or drop it here", keyAdvertised, values[keyAdvertised], l.Name, keyListeners)
		}
	}
	if len(c.Advertised) == 0 {
		c.Advertised = slices.Clone(c.Listeners)
	}
	for _, l := range c.ControllerListeners {
		if !hasName(c.ControllerAdvertised, l.Name) {
			c.ControllerAdvertised = append(c.ControllerAdvertised, l)
		}
	}
	for _, list := range [][]Listener{c.Advertised, c.ControllerAdvertised} {
		for i := range list {
			if err := c.advertisable(&list[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// advertisable gives an address without a host this machine's name, and refuses
// one that no client can dial. A controller on every interface is told by name.
func (c *Config) advertisable(l *Listener) error {
	ip := net.ParseIP(l.Host)
	controller := slices.Contains(c.ControllerListenerNames, l.Name)
	switch {
	case l.Host == "" || controller && ip != nil && ip.IsUnspecified():
		name, err := os.Hostname()
		if err != nil {
			name = "localhost"
		}
		l.Host = name
	case ip != nil && ip.IsUnspecified():
		return fmt.Errorf("nobody can connect to %s: set %s to %s://HOST:%d with a HOST that clients can reach", l, keyAdvertised, l.Name, l.Port)
	}
	return nil
}

func hasName(list []Listener, name string) bool {
	return slices.ContainsFunc(list, func(l Listener) bool { return l.Name == name })
}

// setInterBroker picks the listener that brokers use among themselves.
func (c *Config) setInterBroker(values map[string]string) error {
	name, named := values[keyInterBroker]
	name = strings.ToUpper(strings.TrimSpace(name))
	if _, both := values[keyInterProtocol]; both && named {
		return fmt.Errorf("%s and %s are both given: drop %s", keyInterBroker, keyInterProtocol, keyInterProtocol)
	}
	if !named {
		name = "PLAINTEXT"
		if len(c.Advertised) > 0 && !hasName(c.Advertised, name) {
			name = c.Advertised[0].Name
		}
	}
	c.InterBrokerListener = name
	switch {
	case !c.Broker:
		return nil
	case slices.Contains(c.ControllerListenerNames, name):
		return fmt.Errorf("%s=%s is a controllers' listener: name one of the broker's", keyInterBroker, name)
	case !hasName(c.Advertised, name):
		return fmt.Errorf("%s=%s is not among the advertised listeners: name one of them", keyInterBroker, name)
	}
	return nil
}
