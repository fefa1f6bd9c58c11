package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/tidemark-log/tidemark/internal/config"
)

// WriteConfigs formats the directories of a cluster whose nodes run in
// processes of their own. It returns the configuration file and the client
// address of each node. Controllers listen 100 ports above the clients' ones.
func WriteConfigs(dir string, nodes, port int) (files, addrs []string, err error) {
	c := &Cluster{opts: Options{Nodes: nodes, Dir: dir, Port: port}, net: newNetwork(false, 0)}
	for i := range nodes {
		c.nodes = append(c.nodes, &member{id: nodeID(i), dir: dataDir(dir, i),
			clientAddr: fmt.Sprintf("127.0.0.1:%d", port+i), ctrlAddr: fmt.Sprintf("127.0.0.1:%d", port+100+i)})
	}
	for i, m := range c.nodes {
		m.values = c.valuesOf(i)
		file := filepath.Join(dir, strconv.Itoa(i+1), "server.properties")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return nil, nil, fmt.Errorf("make %s: %w", filepath.Dir(file), err)
		}
		if err := os.WriteFile(file, config.Properties(m.values), 0o644); err != nil {
			return nil, nil, fmt.Errorf("write %s: %w", file, err)
		}
		files, addrs = append(files, file), append(addrs, m.clientAddr)
	}
	return files, addrs, c.format()
}
