package lab

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"time"
)

// Proxy is a link through a toxiproxy process, which runs where the link starts
// and serves all links that start there.
type Proxy struct {
	link   Link
	api    string
	listen int // the first port; one for each port of the node
	names  []string
	cmd    *exec.Cmd
}

// proxy starts toxiproxy on a node, or beside the clients, and leads the
// slow links that start there through it.
func (n *Net) proxy(id int, slow []Link, binary string, log io.Writer) error {
	addr, cmd := Address(id), exec.Command(binary)
	if id != Clients {
		cmd = n.Command(id, binary)
	}
	cmd.Args = append(cmd.Args, "-host", addr, "-port", strconv.Itoa(toxicPort))
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start toxiproxy: %w: install it with go install github.com/Shopify/toxiproxy/v2/cmd/server", err)
	}
	for _, l := range slow {
		if l.From != id {
			continue
		}
		p := &Proxy{link: l, api: fmt.Sprintf("http://%s:%d", addr, toxicPort), listen: 21000 + 10*l.To, cmd: cmd}
		n.proxies[l] = p
		for i, port := range n.ports {
			name := fmt.Sprintf("to%d-%d", l.To, port)
			p.names = append(p.names, name)
			if err := p.post("/proxies", map[string]any{"name": name, "listen": fmt.Sprintf("127.0.0.1:%d", p.listen+i),
				"upstream": fmt.Sprintf("%s:%d", Address(l.To), port+behind)}); err != nil {
				return err
			}
			if id == Clients {
				continue // clients dial the proxy themselves
			}
			if err := run(host(id), "nft", "add", "rule", "inet", "chaos", "detour", "ip", "daddr", Address(l.To),
				"tcp", "dport", strconv.Itoa(port), "redirect", "to", fmt.Sprintf(":%d", p.listen+i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// post orders something; toxiproxy may still be starting.
func (p *Proxy) post(path string, body any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return p.do(http.MethodPost, path, b)
}

func (p *Proxy) do(method, path string, body []byte) error {
	client := http.Client{Timeout: 2 * time.Second}
	var failed error
	for range 50 {
		req, err := http.NewRequest(method, p.api+path, bytes.NewReader(body))
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err == nil {
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode < 300 || resp.StatusCode == http.StatusConflict || method == http.MethodDelete && resp.StatusCode == http.StatusNotFound {
				return nil
			}
			return fmt.Errorf("toxiproxy, %s %s: %s", method, path, text)
		}
		failed = err
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("toxiproxy of link %v: %w", p.link, failed)
}

// slow adds a delay in both directions.
func (p *Proxy) slow(delay, jitter time.Duration) (Undo, error) {
	var errs error
	for _, name := range p.names {
		for _, stream := range []string{"upstream", "downstream"} {
			errs = errors.Join(errs, p.post("/proxies/"+name+"/toxics", map[string]any{
				"name": stream, "type": "latency", "stream": stream,
				"attributes": map[string]int64{"latency": delay.Milliseconds(), "jitter": jitter.Milliseconds()},
			}))
		}
	}
	return func() error {
		var errs error
		for _, name := range p.names {
			for _, stream := range []string{"upstream", "downstream"} {
				errs = errors.Join(errs, p.do(http.MethodDelete, "/proxies/"+name+"/toxics/"+stream, nil))
			}
		}
		return errs
	}, errs
}

func (p *Proxy) close() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}
