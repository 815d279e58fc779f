/** Calls with typical mistakes and with seldom used arguments of `get`, `wait`, `delete`, `run` and `rollout`. */
import { MANIFESTS, type Scenario } from './calls.ts';

const setting = (labels: string): string => `
apiVersion: v1
kind: ConfigMap
metadata: {name: kept, namespace: demo, labels: ${labels}}
data: {a: b}
`;

const disk = (name: string, size: string): string => `
apiVersion: v1
kind: PersistentVolume
metadata: {name: ${name}}
spec: {capacity: {storage: ${size}}, accessModes: [ReadWriteOnce], hostPath: {path: /srv}}
`;

export const MISTAKES_SCENARIO: Scenario = {
  name: 'mistakes',
  manifests: {
    ...MANIFESTS,
    setting: setting('{app: web}'),
    disks: [disk('large', '100Gi'), disk('small', '900Mi'), disk('middle', '20Gi')].join('---'),
    empty: '',
  },
  files: { 'none/readme.txt': 'no manifest' },
  calls: `
apply -f - < app
apply -f - < disks
apply -f - < setting
get pv --sort-by=.spec.capacity.storage -o name
get pods -n demo -o name --sort-by=.spec.nope
get pod single -n demo -o jsonpath={.metadata[name]}
get pod single -n demo -o jsonpath={.spec.containers[0:1].name}
get pod single -n demo -o jsonpath={.spec.containers[-1:].name}
get pod single -n demo -o jsonpath={.status.containerStatuses[0].ready}
get pods -n demo -w --output-watch-events --request-timeout=1s
get deploy -n demo -w --output-watch-events --request-timeout=1s -o jsonpath={.type}/{.object.metadata.name}
apply
create
explain
describe
top pods -n demo
top pods -n empty
apply -f - < empty
apply -f <dir>/none
apply -f - -l app=other < setting
delete -f - -l app=other < setting
delete -f <dir>/none
get cm kept -n demo -o name
replace -f <dir>/none
delete
delete --all
delete cm/kept -n demo -o yaml
delete cm -n demo -l app=none
expose deploy web -n demo --port=80 --selector=a=b,c=d --name=front --dry-run=client -o jsonpath={.spec.selector}
create configmap -n demo
create configmap a b -n demo
create secret generic
create job j -n demo
create cronjob c --image=registry.example/x:1 -n demo
create clusterrole c1 --verb=get --resource=pods --aggregation-rule=a=b
replace -f - --force --dry-run=client < setting
rollout status -n demo
rollout status deploy -n demo --watch=false
rollout history deploy -n demo
rollout history deploy/web -n demo --revision=9
rollout restart deploy -n demo
rollout restart pod/single -n demo
rollout restart cm/kept -n demo
rollout pause pod/single -n demo
rollout resume cm/kept -n demo
rollout pause deploy -n demo
rollout restart deploy/web -n demo
rollout resume deploy/web -n demo
wait cm/kept -n demo --for=delete --timeout=0
wait cm/kept -n demo --for=condition=Ready --timeout=0
wait cm/absent cm/kept -n demo --for=condition=Ready --timeout=1s
run p --image=registry.example/x:1 -n demo --rm
run p --image=registry.example/x:1 -n demo --restart=Bad
run p --image=registry.example/x:1 -n demo -i --dry-run=client
run p --image=registry.example/x:1 -n demo --expose --dry-run=client
run p --image=registry.example/x:1 -n demo --expose --port=80 --dry-run=client
events -n demo --types=Bad
explain pods --output=bad
drain
cordon
uncordon
`,
};
