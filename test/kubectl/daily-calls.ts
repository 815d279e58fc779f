/** Calls of everyday work with workloads, nodes and files, of which many have a flag that is seldom used. */
import type { Scenario } from './calls.ts';

const setting = (value: string): string => `
apiVersion: v1
kind: ConfigMap
metadata: {name: one, namespace: demo}
data: {a: "${value}"}
`;

export const DAILY_SCENARIO: Scenario = {
  name: 'daily',
  manifests: {
    one: setting('1'),
    two: setting('2'),
    three: setting('3'),
    app: `
apiVersion: v1
kind: Namespace
metadata: {name: demo}
---
apiVersion: v1
kind: Pod
metadata: {name: labelled, namespace: demo, labels: {app: web}}
spec: {containers: [{name: c, image: registry.example/web:1}]}
---
apiVersion: v1
kind: Pod
metadata: {name: plain, namespace: demo}
spec: {containers: [{name: c, image: registry.example/web:1}]}
---
apiVersion: v1
kind: Node
metadata: {name: edge}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: demo}
spec:
  serviceName: db
  replicas: 1
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: registry.example/db:1}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, namespace: demo}
spec:
  schedule: 0 3 * * *
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: registry.example/job:1}]}}}}
`,
  },
  files: { 'one.yaml': setting('1') },
  calls: `
create ns demo
create sa default -n demo
apply -f - < app
get pods -n demo -L app,tier
get pods -n demo --server-print=false
get pods -n demo --server-print=false -L app --show-labels
get pod plain -n demo --server-print=false -o wide
get pods -n demo --server-print=false --sort-by=.metadata.name --no-headers
get pods --raw /version
get pods -n demo --output-watch-events
get pods -n demo -w --watch-only --request-timeout=1s
explain statefulset.spec.updateStrategy
explain pod.spec.restartPolicy
explain pod.spec.tolerations
explain pod --recursive
explain pod.spec.containers.nope
explain cronjob.spec
patch sts db -n demo --subresource=status --type=merge -p {"status":{"observedGeneration":1,"replicas":1,"readyReplicas":1,"updatedReplicas":1,"currentReplicas":1}}
rollout status sts/db -n demo
create job now --from=cronjob/nightly -n demo --dry-run=client -o yaml
create job now --from=cronjob/nightly -n demo
taint node edge k=v:NoSchedule
taint node edge k=w:NoSchedule --overwrite
taint node edge k-
apply -f - < one
apply -f - --server-side --field-manager=other < two
apply -f - --server-side < two
get cm one -n demo -o yaml
apply -f - --server-side --field-manager=other --force-conflicts < two
apply -f - --server-side < three
apply -f - --server-side --force-conflicts < three
apply -f - < one
get cm one -n demo -o yaml
replace --force -f <dir>/one.yaml
cp <dir>/absent demo/plain:/tmp
config view --kubeconfig=<dir>/absent
config view --kubeconfig=<dir>/absent -o json
`,
};
