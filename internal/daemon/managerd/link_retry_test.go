package managerd

import (
	"testing"
	"time"
)

// TestRetryAfterShortConnections: connections that end at once do not begin the pauses anew.
func TestRetryAfterShortConnections(t *testing.T) {
	if is := retryAfter(640*time.Millisecond, time.Millisecond); is != 640*time.Millisecond {
		t.Errorf("after a short connection: %v", is)
	}
	if is := retryAfter(maxLinkRetry, time.Hour); is != minLinkRetry {
		t.Errorf("after a long connection: %v", is)
	}
}
