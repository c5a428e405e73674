package turn

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
)

// Join is a rank: it joins at the socket, and plays until that is closed. What
// play cannot do is reported, and ends nothing.
func Join(socket string, rank int, play func(Request) (Reply, error)) (err error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return fmt.Errorf("joining: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	return Play(conn, rank, play)
}

// Play is Join on a connection that is there.
func Play(conn io.ReadWriter, rank int, play func(Request) (Reply, error)) error {
	if _, err := fmt.Fprintf(conn, "rank %d\n", rank); err != nil {
		return fmt.Errorf("joining: %w", err)
	}
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		answer, err := answerTo(lines.Text(), play)
		if err != nil {
			answer = "failed " + strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		if _, err := fmt.Fprintln(conn, answer); err != nil {
			return fmt.Errorf("answering: %w", err)
		}
	}
	return lines.Err()
}

func answerTo(line string, play func(Request) (Reply, error)) (string, error) {
	request, err := ParseRequest(line)
	if err != nil {
		return "", err
	}
	reply, err := play(request)
	return reply.String(), err
}
