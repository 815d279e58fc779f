/** Calls of `debug` for pods, copies of pods and nodes, with each profile. */
import { MANIFESTS, type Scenario } from './calls.ts';

const PROFILES = ['general', 'baseline', 'restricted', 'netadmin', 'sysadmin', 'legacy'];

/** Flags of pods on a node. Each has a namespace of its own, because the names of the pods are chosen at random. */
const ON_NODE = ['', '-c shell -- sh -c true', ...PROFILES.slice(1).map((each) => `--profile=${each} --quiet`)];

const account = (namespace: string): string => `
apiVersion: v1
kind: Namespace
metadata: {name: ${namespace}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: default, namespace: ${namespace}}
---`;

export const DEBUG_SCENARIO: Scenario = {
  name: 'debug',
  manifests: {
    node: MANIFESTS['node'] ?? '',
    pod: `${['demo', ...ON_NODE.map((_, index) => `node-${index}`)].map(account).join('')}
apiVersion: v1
kind: Pod
metadata: {name: one, namespace: demo, labels: {app: one}, annotations: {note: text}}
spec:
  nodeName: node-a
  automountServiceAccountToken: false
  initContainers:
  - {name: first, image: "registry.example/i:1"}
  containers:
  - name: main
    image: registry.example/a:1
    command: [serve]
    args: [a]
    ports: [{containerPort: 80}]
    livenessProbe: {tcpSocket: {port: 80}}
    readinessProbe: {tcpSocket: {port: 80}}
    startupProbe: {tcpSocket: {port: 80}}
  - {name: side, image: "registry.example/b:1", securityContext: {capabilities: {drop: [ALL]}}}
`,
    user: `${['custom', 'node-custom'].map(account).join('')}
apiVersion: v1
kind: Pod
metadata: {name: other, namespace: custom}
spec: {securityContext: {runAsUser: 7}, automountServiceAccountToken: false, containers: [{name: a, image: "registry.example/a:1"}]}
`,
  },
  files: {
    'custom.yaml': `
env: [{name: A, value: custom}, {name: E, value: e}]
args: [x]
tty: null
volumeMounts: [{name: kube, mountPath: /kube}]
resources: {limits: {cpu: 100m}}
securityContext: {runAsUser: 0, capabilities: {drop: [ALL]}}
`,
    'custom.json': '{"workingDir": "/tmp", "securityContext": {"capabilities": {"add": ["NET_RAW"]}}}',
    'light.yaml': 'env: [{name: A, value: custom}, {name: E, value: e}]\nsecurityContext: {runAsUser: 0}\n',
    'empty.yaml': '',
    ...Object.fromEntries(
      Object.entries({
        name: 'name: x',
        command: 'command: [x]',
        image: 'image: x',
        lifecycle: 'lifecycle: {}',
        devices: 'volumeDevices: [{name: a, devicePath: /a}]',
        none: 'command: []\nname: ""\nvolumeDevices: []',
      }).map(([name, text]) => [`custom-${name}.yaml`, text]),
    ),
  },
  calls: `
apply -f - < node
apply -f - < pod
debug
debug one -n demo
debug one -n demo --image=registry.example/d:1 -t
debug one -n demo --image=registry.example/d:1 --target=main --copy-to=two
debug missing -n demo --image=registry.example/d:1
debug deploy/web -n demo --image=registry.example/d:1
debug one -n demo --image=registry.example/d:1 --profile=wrong
debug one -n demo --image=registry.example/d:1 --image-pull-policy=Sometimes
debug one -n demo --image=registry.example/d:1 -c main
debug one -n demo --image=registry.example/d:1 --set-image=main=x:1
debug one -n demo --image=registry.example/d:1 --same-node
debug one -n demo --image=registry.example/d:1 --keep-labels
debug one -n demo --image=registry.example/d:1 --replace
debug one -n demo --image=registry.example/d:1 --target=none -c t0
debug one -n demo --copy-to=two
debug one -n demo --copy-to=three -c none
debug one -n demo --image=UPPER -c bad
debug one -n demo --image=registry.example/d:1
debug one -n demo --image=registry.example/d:1 --quiet
debug one -n demo --image=registry.example/d:1 -c d1 --env=A=b --env=C=d --image-pull-policy=Never -- sleep 5
debug one -n demo --image=registry.example/d:1 -c d2 --target=main --arguments-only -- sleep 5
debug pod/one -n demo --image=registry.example/d:1 -c d2
get pod one -n demo -o jsonpath={.spec.ephemeralContainers[2:]}
${PROFILES.map((each) => `debug one -n demo --image=registry.example/d:1 -c p-${each} --profile=${each} --quiet`).join('\n')}
get pod one -n demo -o jsonpath={.spec.ephemeralContainers[4:]}
get pod two -n demo -o json
debug one -n demo --copy-to=copy-set --set-image=main=m:2,side=s:2
debug one -n demo --copy-to=copy-all --set-image=*=m:3 --keep-labels --keep-annotations --same-node
debug one -n demo --copy-to=copy-probes --keep-liveness --keep-readiness --keep-startup --keep-init-containers=false --share-processes=false -c main -- sh
debug one -n demo --copy-to=copy-new --image=registry.example/d:1 -c new
debug one -n demo --copy-to=copy-change --image=registry.example/d:1 -c side --env=A=b
debug one -n demo --copy-to=copy-change --image=registry.example/d:1
debug one -n demo --copy-to=copy-default --image=registry.example/d:1 -- sh -c true
${PROFILES.map((each) => `debug one -n demo --copy-to=profile-${each} --image=registry.example/d:1 -c new --profile=${each}`).join('\n')}
get pods -n demo -o jsonpath={.items[*].spec.containers}
get pods -n demo -o jsonpath={.items[*].spec.shareProcessNamespace}
get pods -n demo -o jsonpath={.items[*].spec.nodeName}
get pods -n demo -o jsonpath={.items[*].metadata.labels}
get pods -n demo -o jsonpath={.items[*].metadata.annotations}
get pods -n demo -o jsonpath={.items[*].spec.initContainers}
debug one -n demo --copy-to=replaced --replace
get pods one replaced -n demo -o name
debug node/missing --image=registry.example/d:1
debug node/node-a
debug node/node-a --image=registry.example/d:1 --copy-to=x
debug node/node-a --image=registry.example/d:1 --target=main
${ON_NODE.map(
  (flags, index) => `debug -n node-${index} node/node-a --image=registry.example/d:1 ${flags}
get pods -n node-${index} -o jsonpath={.items[*].spec}`,
).join('\n')}
get pod copy-set -n demo -o jsonpath={.spec.ephemeralContainers}
${['name', 'command', 'image', 'lifecycle', 'devices'].map((each) => `debug one -n demo --image=registry.example/d:1 -c refused --custom=<dir>/custom-${each}.yaml`).join('\n')}
debug one -n demo --image=registry.example/d:1 --tty --custom=<dir>/custom-name.yaml
debug one -n demo --image=registry.example/d:1 --profile=wrong --custom=<dir>/none.yaml
debug one -n demo --image=registry.example/d:1 -c absent --custom=<dir>/absent.yaml
debug one -n demo --image=registry.example/d:1 -c empty --custom=<dir>/empty.yaml
debug one -n demo --image=registry.example/d:1 -c none --custom=<dir>/custom-none.yaml
debug one -n demo --image=registry.example/d:1 -c json --custom=<dir>/custom.json
debug one -n demo --image=registry.example/d:1 -c light --env=C=d --env=A=b --custom=<dir>/light.yaml -- sleep 5
debug one -n demo --image=registry.example/d:1 -c limited --custom=<dir>/custom.yaml
get pod one -n demo -o jsonpath={.spec.ephemeralContainers[10:]}
debug one -n demo --copy-to=custom-new --image=registry.example/d:1 -c new --env=A=b --custom=<dir>/light.yaml
debug one -n demo --copy-to=custom-main -c main --custom=<dir>/light.yaml -- sh
debug one -n demo --copy-to=custom-first -c first --custom=<dir>/light.yaml -- sh
debug one -n demo --copy-to=custom-set --set-image=main=m:2 --custom=<dir>/light.yaml
get pod custom-new custom-main custom-set -n demo -o jsonpath={.items[*].spec.containers}
apply -f - < user
debug other -n custom --image=registry.example/d:1 -c warned
debug other -n custom --image=registry.example/d:1 -c root --custom=<dir>/light.yaml
debug other -n custom --copy-to=copy --image=registry.example/d:1 -c new --profile=sysadmin
get pod other -n custom -o jsonpath={.spec.ephemeralContainers}
debug -n node-custom node/node-a --image=registry.example/d:1 --env=A=b --custom=<dir>/light.yaml
get pods -n node-custom -o jsonpath={.items[*].spec}
`,
};
