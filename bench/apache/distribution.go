package apache

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// program is what nodes run.
type program struct {
	format []string // before --cluster-id ID --config FILE
	serve  []string // before FILE
}

// heap is what Kafka's scripts give a broker.
const heap = "-Xms1G -Xmx1G"

// tuning is how Kafka's scripts tune the virtual machine. Their log of its collections
// and their port for JMX are left out: neither makes it faster.
const tuning = "-server -XX:+UseG1GC -XX:MaxGCPauseMillis=20 -XX:InitiatingHeapOccupancyPercent=35 -XX:+ExplicitGCInvokesConcurrent" +
	" -Djava.awt.headless=true"

const loggingFile = "log4j2.properties"

// logging is what Kafka logs by default, all in one file.
const logging = `status = error
appender.all.type = Console
appender.all.name = all
appender.all.layout.type = PatternLayout
appender.all.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = info
rootLogger.appenderRef.all.ref = all
`

// programOf returns what the nodes of a cluster in dir run: the binary, or Apache Kafka
// if it is "".
func programOf(binary, dir string) (program, error) {
	if binary != "" {
		if _, err := exec.LookPath(binary); err != nil {
			return program{}, fmt.Errorf("%w: build it, or name another binary with -x", err)
		}
		return program{format: []string{binary, "format"}, serve: []string{binary, "serve", "--config"}}, nil
	}
	home, err := kafkaHome()
	if err != nil {
		return program{}, err
	}
	jars, err := fs.Glob(os.DirFS(home), "libs/kafka*.jar")
	if err != nil {
		return program{}, err
	}
	if len(jars) == 0 {
		return program{}, fmt.Errorf("%s has no jars of Kafka in libs: set KAFKA_HOME to an unpacked binary distribution, not to its sources", home)
	}
	java, err := findJava()
	if err != nil {
		return program{}, err
	}
	run := func(options string, words ...string) []string {
		return slices.Concat([]string{java}, strings.Fields(options), []string{
			"-Dlog4j2.configurationFile=" + filepath.Join(dir, loggingFile), "-cp", filepath.Join(home, "libs", "*"),
		}, words)
	}
	options := cmp.Or(os.Getenv("KAFKA_HEAP_OPTS"), heap) + " " + cmp.Or(os.Getenv("KAFKA_JVM_PERFORMANCE_OPTS"), tuning)
	return program{format: run("-Xmx256M", "kafka.tools.StorageTool", "format"), serve: run(options, "kafka.Kafka")}, nil
}

// kafkaHome is the folder of the distribution.
func kafkaHome() (string, error) {
	home := os.Getenv("KAFKA_HOME")
	if home == "" {
		return "", errors.New("KAFKA_HOME is not set: set it to the folder of an unpacked binary distribution of Apache Kafka 4")
	}
	return filepath.Abs(home)
}

func findJava() (string, error) {
	home := os.Getenv("JAVA_HOME")
	if home == "" {
		java, err := exec.LookPath("java")
		if err != nil {
			return "", fmt.Errorf("%w: install Java 17 or newer, or set JAVA_HOME to where it is", err)
		}
		return filepath.Abs(java)
	}
	java, err := exec.LookPath(filepath.Join(home, "bin", "java"))
	if err != nil {
		return "", fmt.Errorf("%w: set JAVA_HOME to a Java 17 or newer, or unset it to use the one on the PATH", err)
	}
	return filepath.Abs(java)
}

// tool becomes one of the distribution's tools, with the same input and outputs.
func tool(args []string) error {
	home, err := kafkaHome()
	if err != nil {
		return err
	}
	all, err := fs.Glob(os.DirFS(home), "bin/kafka-*.sh")
	if err != nil {
		return err
	}
	for i, script := range all {
		all[i] = strings.TrimSuffix(strings.TrimPrefix(script, "bin/kafka-"), ".sh")
	}
	switch {
	case len(all) == 0:
		return fmt.Errorf("%s has no tools in bin: set KAFKA_HOME to a whole unpacked binary distribution", home)
	case len(args) == 0:
		return fmt.Errorf("no tool is named: say one of %s", strings.Join(all, ", "))
	case !slices.Contains(all, args[0]):
		return fmt.Errorf("%q is no tool of %s: say one of %s", args[0], home, strings.Join(all, ", "))
	}
	script := filepath.Join(home, "bin", "kafka-"+args[0]+".sh")
	err = syscall.Exec(script, append([]string{script}, args[1:]...), toolEnvironment(os.Environ()))
	return fmt.Errorf("run %s: %w", script, err)
}

// toolEnvironment takes a broker's heap away from a tool. What KAFKA_TOOL_OPTS says
// takes the place of all that the scripts choose: two collectors would not go together.
func toolEnvironment(env []string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, "KAFKA_HEAP_OPTS=") })
	if options := os.Getenv("KAFKA_TOOL_OPTS"); options != "" {
		env = append(env, "KAFKA_HEAP_OPTS="+options, "KAFKA_JVM_PERFORMANCE_OPTS=-Djava.awt.headless=true")
	}
	return env
}
