package settings

import (
	"fmt"

	"github.com/tributary-fabric/tributary/internal/core/quota"
	"github.com/tributary-fabric/tributary/topology"
)

// quotas reads what hosts may have of a manager.
func (d *reader) quotas(top field, to *quota.Config) {
	before := len(d.errs)
	d.object(top, map[string]func(field){
		"all":  func(f field) { d.object(f, d.quota(&to.All)) },
		"host": func(f field) { d.object(f, d.withGroups(&to.Host)) },
		"labels": func(f field) {
			for _, i := range d.items(f) {
				l := quota.Label{Name: i.Key}
				fields := d.withGroups(&l.Limits)
				fields["hosts"] = func(f field) {
					d.list(f, func(h field) {
						if name, ok := d.text(h); ok {
							l.Hosts = append(l.Hosts, name)
						}
					})
				}
				fields["weight"] = count(d, &l.Weight, 1, quota.MaxWeight)
				d.object(i, fields, "hosts!")
				to.Labels = append(to.Labels, l)
			}
		},
	})
	if err := to.Validate(); err != nil && len(d.errs) == before {
		d.fail(top, fmt.Errorf("%w: %w", err, topology.ErrField))
	}
}

// withGroups returns the readers of the limits of a host or label.
func (d *reader) withGroups(to *quota.Limits) map[string]func(field) {
	fields := d.quota(to)
	fields["groups"] = count(d, &to.Groups, 1, 1<<20)
	return fields
}

// quota returns the readers of the limits of all, whose groups are among the limits.
func (d *reader) quota(to *quota.Limits) map[string]func(field) {
	return map[string]func(field){
		"slots": count(d, &to.Slots, 1, 1<<40), "plans": count(d, &to.Plans, 1, 1e6), "waiting": count(d, &to.Waiting, 1, 1<<20),
	}
}
