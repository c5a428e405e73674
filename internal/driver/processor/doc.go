// Package processor reports what a machine's processors have spent, and how busy
// they are, and how much memory it has. [Read], [ReadSum], [ReadMemory],
// [ReadProcess] and [ReadBoot] ask the kernel; on other systems than Linux they can report nothing, and say so.
package processor
