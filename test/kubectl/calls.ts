/** Calls that run in this order against a server that no other scenario uses. */
export interface Scenario {
  readonly name: string;
  /** Documents for stdin, by name. */
  readonly manifests: Readonly<Record<string, string>>;
  /** Files by path below `<dir>`. Those in `bin/` are executable and on PATH. */
  readonly files: Readonly<Record<string, string>>;
  /** Environment variables of kubectl. */
  readonly variables?: Readonly<Record<string, string>>;
  /** One call a line. */
  readonly calls: string;
}

/**
 * Calls that the built-in client and kubectl 1.36 make in the same order against the same server. `< name` passes a
 * manifest on stdin. `test/upstream/record-kubectl.ts` records what kubectl prints.
 */
export const MANIFESTS: Readonly<Record<string, string>> = {
  app: `
apiVersion: v1
kind: Namespace
metadata: {name: demo, labels: {team: blue}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: default, namespace: demo}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: demo, labels: {app: web}}
data: {color: blue, text: "line one\\nline two\\n"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: demo, labels: {app: web}, annotations: {note: hello}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        image: registry.example/web:1
        command: [serve, --port=80]
        ports: [{containerPort: 80, name: http}]
        env: [{name: COLOR, valueFrom: {configMapKeyRef: {name: settings, key: color}}}, {name: PLAIN, value: "1"}]
        resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 128Mi}}
        readinessProbe: {httpGet: {path: /ready, port: http}}
        volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: data, emptyDir: {}}, {name: conf, configMap: {name: settings}}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: demo, labels: {app: web}}
spec: {clusterIP: None, selector: {app: web}, ports: [{port: 80, targetPort: http}]}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: demo}
stringData: {password: hidden}
---
apiVersion: v1
kind: Pod
metadata: {name: single, namespace: demo, labels: {app: single}}
spec:
  nodeName: node-a
  terminationGracePeriodSeconds: 0
  tolerations: [{key: extra, operator: Exists, effect: NoSchedule}]
  containers: [{name: main, image: registry.example/one:2}, {name: side, image: registry.example/side:1}]
`,
  changed: `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: demo, labels: {app: web}}
data: {color: green}
`,
  node: `
apiVersion: v1
kind: Node
metadata: {name: node-a, labels: {kubernetes.io/hostname: node-a, node-role.kubernetes.io/worker: ""}}
status:
  capacity: {cpu: "4", memory: 8Gi, pods: "110", ephemeral-storage: 10Gi}
  allocatable: {cpu: 3500m, memory: 7Gi, pods: "110", ephemeral-storage: 10Gi}
  addresses: [{type: InternalIP, address: 192.0.2.1}, {type: Hostname, address: node-a}]
  conditions: [{type: Ready, status: "True", reason: KubeletReady, message: kubelet is posting ready status}]
  nodeInfo: {kubeletVersion: v1.36.0, osImage: Debian, architecture: amd64, operatingSystem: linux, machineID: "", systemUUID: "", bootID: "", kernelVersion: "6", containerRuntimeVersion: "x://1", kubeProxyVersion: ""}
`,
  broken: `
apiVersion: v1
kind: ConfigMap
metadata: {name: broken, namespace: demo}
dta: {a: b}
`,
  unknown: `
apiVersion: example.com/v1
kind: Widget
metadata: {name: w}
`,
  crd: `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, description: Wanted state., properties: {size: {type: integer, description: Number of parts.}}}}}}
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
`,
  widget: `
apiVersion: example.com/v1
kind: Widget
metadata: {name: first, namespace: demo}
spec: {size: 3}
`,
};

export const CALLS: readonly string[] = `
apply -f - < node
apply -f - < app
apply -f - < app
apply -f - < changed
apply -f - --dry-run=server < app
apply -f - --dry-run=client < changed
apply -f - < broken
apply -f - --validate=false < broken
apply -f - < unknown
apply -f - -o name < app
apply -f - --server-side < changed
apply -f - --server-side --force-conflicts < changed
get pods
get pods -n demo
get pods -n demo -o wide
get pods -A
get pods -n demo --no-headers
get pods -n demo --show-labels
get pods -n demo -L app
get pods -n demo -l app=single
get pods -n demo -l app=none
get pods -n demo -l app=none --ignore-not-found
get pods -n demo --field-selector status.phase=Running
get pods -n demo -o name
get pod/single -n demo
get pod single missing -n demo
get pod missing -n demo
get pod missing -n demo --ignore-not-found
get po,svc,cm -n demo
get all -n demo
get deploy web -n demo
get deployments.apps web -n demo
get deployment.v1.apps/web -n demo
get deploy -n demo -o wide
get cm settings -n demo -o yaml
get cm settings -n demo -o json
get cm -n demo -o yaml
get cm settings -n demo -o jsonpath={.data.color}
get cm settings -n demo -o 'jsonpath={range .data}{.color}{"\\n"}{end}'
get cm -n demo -o 'jsonpath={range .items[*]}{.metadata.name}{"\\t"}{.kind}{"\\n"}{end}'
get cm -n demo -o 'jsonpath={.items[?(@.metadata.name=="settings")].data.color}'
get cm -n demo -o jsonpath={.items[0:1].metadata.name}
get cm -n demo -o jsonpath={.items[-1:].metadata.name}
get cm -n demo -o jsonpath={..name}
get deploy web -n demo -o 'jsonpath={.spec.template.spec.containers[0].ports}'
get deploy web -n demo -o jsonpath={.missing.field}
get deploy web -n demo -o jsonpath={.spec.replicas
get deploy web -n demo -o custom-columns=NAME:.metadata.name,REPLICAS:.spec.replicas,NONE:.spec.nothing
get deploy web -n demo -o custom-columns=IMAGES:.spec.template.spec.containers[*].image,LABELS:.metadata.labels
get deploy -n demo -o custom-columns=NAME:.metadata.name --no-headers
get cm -n demo --sort-by=.metadata.name -o name
get cm -n demo --sort-by=.metadata.name
get cm -n demo -o wrong
get nothing
get
get pods single -l app=x -n demo
get ns demo --show-labels
get nodes
get node node-a -o jsonpath={.metadata.labels}
get secret key -n demo
get secret key -n demo -o jsonpath={.data.password}
get --raw /version
get --raw /nope
get pods --unknown
get pods -z
get pods -n demo --chunk-size=1
get sa -n demo
get svc web -n demo
get svc web -n demo -o jsonpath={.spec.clusterIP}
describe cm settings -n demo
describe secret key -n demo
describe svc web -n demo
describe deploy web -n demo
describe pod single -n demo
describe pod sing -n demo
describe pod missing -n demo
describe node node-a
describe ns demo
describe sa default -n demo
describe pods -n empty
create namespace other
create namespace other
create ns third --dry-run=client -o yaml
create configmap lit -n demo --from-literal=a=b --from-literal=c=d
create cm lit2 -n demo --from-literal=a=b --dry-run=client -o yaml
create cm lit3 -n demo --from-literal=a=b --dry-run=server
create cm lit -n demo --from-literal=a=b
create cm broken -n demo --from-literal=ab
create secret generic tok -n demo --from-literal=p=q --dry-run=client -o yaml
create secret docker-registry reg -n demo --docker-username=u --docker-password=p --docker-server=r.example --dry-run=client -o yaml
create deployment api --image=registry.example/api:1 --replicas=3 --port=8080 -n demo --dry-run=client -o yaml
create deployment api --image=registry.example/api:1 -n demo
create deployment cmd --image=registry.example/api:1 -n demo --dry-run=client -o yaml -- sleep 5
create job once --image=registry.example/job:1 -n demo --dry-run=client -o yaml -- do it
create cronjob often --image=registry.example/job:1 --schedule=*/5 -n demo --dry-run=client -o yaml
create sa robot -n demo
create role reader --verb=get,list --resource=pods,deployments.apps -n demo --dry-run=client -o yaml
create role reader --verb=get --resource=pods -n demo
create clusterrole urls --verb=get --non-resource-url=/healthz --dry-run=client -o yaml
create clusterrole seer --verb=get --resource=nodes,pods/log
create rolebinding rb --role=reader --serviceaccount=demo:robot --user=jane -n demo --dry-run=client -o yaml
create rolebinding rb --role=reader --serviceaccount=demo:robot -n demo
create clusterrolebinding crb --clusterrole=seer --group=ops --dry-run=client -o yaml
create rolebinding bad -n demo
create service clusterip plain --tcp=80:8080 -n demo --dry-run=client -o yaml
create service nodeport np --tcp=80 -n demo --dry-run=client -o yaml
create service externalname ext --external-name=example.com -n demo --dry-run=client -o yaml
create ingress web --rule=web.example/*=web:80,tls=cert --class=nginx -n demo --dry-run=client -o yaml
create quota q --hard=pods=5,cpu=2 -n demo --dry-run=client -o yaml
create pdb p --selector=app=web --min-available=1 -n demo --dry-run=client -o yaml
create priorityclass high --value=1000 --description=text --dry-run=client -o yaml
create -f - < changed
create -f - --dry-run=client < changed
replace -f - < changed
run solo --image=registry.example/x:1 -n demo --dry-run=client -o yaml
run solo --image=registry.example/x:1 --labels=a=b --env=K=V --port=80 --restart=Never -n demo --dry-run=client -o yaml -- arg
run solo --image=registry.example/x:1 --command -n demo --dry-run=client -o yaml -- sh -c true
expose deploy web --port=8080 --target-port=80 --name=front -n demo --dry-run=client -o yaml
expose pod single --port=80 -n demo --dry-run=client -o yaml
expose deploy web --port=80 -n demo
scale deploy web --replicas=3 -n demo
scale deploy web --replicas=4 --current-replicas=9 -n demo
scale deploy/web deploy/api --replicas=1 -n demo
scale deploy web -n demo
label pod single tier=front -n demo
label pod single tier=front -n demo
label pod single tier=back -n demo
label pod single tier=back --overwrite -n demo
label pod single tier- -n demo
label pod single absent- -n demo
label pods --all all=yes -n demo
label pod single -n demo
annotate pod single why=because -n demo
annotate pod single why=other -n demo
annotate pod single why=other --overwrite -n demo
annotate pod single why- -n demo
patch cm settings -p {"data":{"x":"y"}} -n demo
patch cm settings -p {"data":{"x":"y"}} -n demo
patch cm settings --type=merge -p {"data":{"x":null}} -n demo
patch cm settings --type=json -p [{"op":"add","path":"/data/z","value":"1"}] -n demo
patch cm settings --type=wrong -p {} -n demo
patch cm settings -n demo
patch cm settings -p {"data":{"x":"z"}} -n demo -o jsonpath={.data.x}
patch deploy web -p {"spec":{"replicas":-1}} -n demo
rollout status deploy/web -n demo --watch=false
rollout history deploy/web -n demo
rollout restart deploy/web -n demo
rollout pause deploy/web -n demo
rollout pause deploy/web -n demo
rollout resume deploy/web -n demo
rollout undo deploy/web -n demo
rollout status cm/settings -n demo
cordon node-a
cordon node-a
uncordon node-a
taint node node-a k=v:NoSchedule
taint node node-a k=v:NoSchedule
taint node node-a k:NoSchedule-
taint node node-a nope
drain node-a --dry-run=client
drain node-a --force --dry-run=client
wait cm/settings -n demo --for=jsonpath={.data.z}=1
wait pod/single -n demo --for=condition=Ready --timeout=1s
wait pod/missing -n demo --for=delete
wait pod/missing -n demo --for=condition=Ready
events -n empty
auth can-i get pods
auth can-i get pods --as=jane -n demo
auth can-i get nodes --as=jane -q
auth can-i --list --as=system:anonymous
auth whoami
explain configmap.data
explain pod.spec.nodeName
explain nothing
apply -f - < crd
wait crd/widgets.example.com --for=condition=Established --timeout=20s
apply -f - < widget
get widgets -n demo
get wd first -n demo -o jsonpath={.spec.size}
describe widget first -n demo
explain widget.spec
patch widget first --type=merge -p {"spec":{"size":4}} -n demo
delete widget first -n demo
config current-context
config get-contexts
config view
config use-context nowhere
api-versions
api-resources --api-group=apps
api-resources --api-group=apps -o name
api-resources --namespaced=false --api-group=rbac.authorization.k8s.io -o wide
logs
logs missing -n demo
exec single -n demo
exec single -n demo ls
delete cm lit -n demo
delete cm lit -n demo
delete cm lit -n demo --ignore-not-found
delete cm -l app=web -n demo
delete deploy/api svc/web -n demo
delete pod single -n demo --dry-run=client
delete pod single -n demo --grace-period=0 --force
delete -f - --ignore-not-found < changed
delete ns other --wait=false
frobnicate
`
  .trim()
  .split('\n');

/** Words of a call. Quotes keep spaces. */
export function wordsOf(
  call: string,
  manifests = MANIFESTS,
): { readonly args: readonly string[]; readonly input: string | undefined } {
  const [, command = '', manifest] = /^(.*?)(?: < (\w+))?$/s.exec(call) ?? [];
  const args = [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
  return { args, input: manifest === undefined ? undefined : manifests[manifest] };
}

export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The outcome without values that differ between runs: times, ages, UIDs, versions, ports and addresses. */
export function comparable({ code, stdout, stderr }: Outcome, places: readonly string[]): Outcome {
  const clean = (text: string): string => {
    let result = text;
    for (const place of places) result = result.replaceAll(place, '<place>');
    return result
      .replaceAll(/\b\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [-+]\d{4}/g, '<time>')
      .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, '<time>')
      .replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? [-+]\d{4}/g, '<time>')
      .replaceAll(/\/tmp\/(LIVE|MERGED)-\d+/g, '<$1>')
      .replaceAll(/[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/g, '<uid>')
      .replaceAll(/(resourceVersion"?: "?)\d+/g, '$1<version>')
      .replaceAll(/(Resource Version:\s+)\d+/g, '$1<version>')
      .replaceAll(/127\.0\.0\.1:\d+/g, '<server>')
      .replaceAll(/127-0-0-1-\d+/g, '<server>')
      .replaceAll(/X509SHA256=[\da-f]{64}/g, 'X509SHA256=<digest>')
      .replaceAll(/kube-api-access-\w{5}/g, 'kube-api-access-<suffix>')
      .replaceAll(/(debugger-(?:node-a-)?)[a-z\d]{5}\b/g, '$1<suffix>')
      .replaceAll(/(?<!averageValue: )\b(?:\d+[smhd]){1,2}(?=\s|$)/gm, '<age>')
      .replaceAll(/(<age>|\bAGE|\bLAST SEEN)(?: {2,})/g, '$1  ')
      .replaceAll(/(tooling":"kubectl\/v1\.36)\.\d+/g, '$1')
      .replaceAll(/^(?:[EWI]\d{4} |Unable to read directory |Warning: failed to update ApplySet: ).*\n/gm, '');
  };
  return { code, stdout: clean(stdout), stderr: clean(stderr) };
}
