package p4rttest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// BMv2Variable names a variable with the path of bmv2, where it is not on the PATH.
const BMv2Variable = "TRIBUTARY_BMV2"

// BMv2 returns the path of simple_switch_grpc, or why a test has to do without:
// there is none, or it may not make network namespaces.
func BMv2() (path, lack string) {
	name := os.Getenv(BMv2Variable)
	if name == "" {
		name = "simple_switch_grpc"
	}
	path, err := exec.LookPath(name)
	switch {
	case err != nil:
		return "", fmt.Sprintf("no %s: put bmv2's, built with P4Runtime, on the PATH, or its path into %s", name, BMv2Variable)
	case os.Geteuid() != 0:
		return "", "network namespaces take root"
	}
	return path, ""
}

// Apart returns the options by which a bmv2 shares nothing with others that run at
// once in other network namespaces: a build with nanomsg has a socket of a common
// name, which it is given another of, in dir; a build without does not know the
// option.
func Apart(bmv2, dir string) ([]string, error) {
	help, err := exec.Command(bmv2, "--help").CombinedOutput()
	if len(help) == 0 {
		return nil, fmt.Errorf("%s --help: %w", bmv2, err)
	}
	const option = "--notifications-addr"
	if !bytes.Contains(help, []byte(option)) {
		return nil, nil
	}
	return []string{option, "ipc://" + filepath.Join(dir, "n")}, nil
}
