/** Calls of `set`, `autoscale`, `certificate`, `auth reconcile`, `config` and `plugin`, with the manifests they need. */
import { MANIFESTS, type Scenario } from './calls.ts';

const REQUEST =
  'LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIWU1JR0FBZ0VBTUI0eERUQUxCZ05WQkFvTUJHUmxiVzh4RFRBTEJnTlZCQU1NQkdwaGJtVXdXVEFUQmdjcQpoa2pPUFFJQkJnZ3Foa2pPUFFNQkJ3TkNBQVRBbWppSklqWkFMbjkyTVJ1SnFPaS9YQXd3Ty8zV3g5SERNeEhVCkkxQkVuYlZ5elJUbTVqbEVVemhkRUlmeDMxZUV5dnVMT0g2dFY1RU1tSXR6a1R1Rm9BQXdDZ1lJS29aSXpqMEUKQXdJRFJ3QXdSQUlnSVBiQ1pTSVdwYlo0cU1Rc0lEQ3ZTcHJpQ0NzM2J5d0NLRFpDM2lDVEc5Z0NJQzZ2dExEbwpmZGZPb2psZEN6aXZSM1BURU1CM1ExYkYxZTVGZXM2VXpFU0IKLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==';

const csr = (name: string): string => `
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: ${name}}
spec: {request: ${REQUEST}, signerName: kubernetes.io/kube-apiserver-client, usages: [client auth]}
`;

export const VERBS_SCENARIO: Scenario = {
  name: 'verbs',
  manifests: {
    app: MANIFESTS['app'] ?? '',
    csr: `${csr('first')}---${csr('second')}`,
    rights: `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: made}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers, namespace: made}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: jane}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: wide}
rules: [{nonResourceURLs: [/healthz], verbs: [get]}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: ignored, namespace: made}
`,
    fewer: `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: made}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers, namespace: made}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: joe}]
`,
    cron: `
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, namespace: demo}
spec:
  schedule: "0 3 * * *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: registry.example/c:1}]}}}}
`,
  },
  files: {
    'deployment.yaml': `
apiVersion: apps/v1
kind: Deployment
metadata: {name: local}
spec:
  selector: {matchLabels: {app: local}}
  template:
    metadata: {labels: {app: local}}
    spec: {containers: [{name: a, image: registry.example/a:1}, {name: b, image: registry.example/b:1}]}
`,
    'env.list': 'ONE=1\n# comment\nTWO=two words\n',
    'ca.pem': '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n',
    'bin/kubectl-hello': '#!/bin/sh\necho "hello $*"\n',
    'bin/kubectl-hello-big_world': '#!/bin/sh\necho "big world $*"; exit 3\n',
    'bin/kubectl-version': '#!/bin/sh\necho shadowed\n',
  },
  calls: `
apply -f - < app
apply -f - < csr
create -f - < cron
set image deploy/web main=registry.example/web:2 -n demo
set image deploy/web main=registry.example/web:2 -n demo
set image deploy web *=registry.example/web:3 -n demo
set image deploy/web other=registry.example/web:3 -n demo
set image deploy/web -n demo
set image main=registry.example/web:2 -n demo
set image deploy,cronjob --all *=registry.example/all:1 -n demo
set image pod/single main=registry.example/one:3 side=registry.example/side:2 -n demo
set image cm/settings a=b -n demo
set image deploy/web main=registry.example/web:4 -n demo --dry-run=client
set image deploy/web main=registry.example/web:4 -n demo --dry-run=server
set image deploy/web main=registry.example/web:4 -n demo -o name
set image -f <dir>/deployment.yaml --local a=registry.example/a:2 -o yaml
set image -f <dir>/deployment.yaml --local *=registry.example/x:2 -o jsonpath={.spec.template.spec.containers[*].image}
get deploy/web -n demo -o jsonpath={.spec.template.spec.containers[0].image}
set env deploy/web A=1 B=2 -n demo
set env deploy/web A=1 B=2 -n demo
set env deploy/web --list -n demo
set env deploy/web A- -n demo
set env deploy/web A=2 B=3 --overwrite=false -n demo
set env deploy/web --env=C=4 -c other -n demo
set env deploy/web --from=configmap/settings -n demo
set env deploy/web --from=configmap/settings --prefix=CM_ --keys=color -n demo
set env deploy/web --from=secret/key -n demo
set env deploy/web --from=secret/absent -n demo
set env deploy/web --list -n demo
set env deploy/web --list --resolve -n demo
set env deploy/web -n demo
set env deploy/web =x -n demo
set env pods --all --list -n demo
set env pod/single X=1 -n demo
set env -f <dir>/deployment.yaml --local A=1 -c a -o yaml
set resources deploy/web --limits=cpu=200m,memory=512Mi --requests=cpu=100m -n demo
set resources deploy/web --limits=cpu=200m,memory=512Mi --requests=cpu=100m -n demo
set resources deploy/web -c=none --limits=cpu=1 -n demo
set resources deploy/web --limits=cpu=wrong -n demo
set resources deploy/web -n demo
set resources deploy/web --limits=cpu=0,memory=0 --requests=cpu=0 -n demo
get deploy/web -n demo -o jsonpath={.spec.template.spec.containers[0].resources}
set resources -f <dir>/deployment.yaml --local --limits=cpu=1 -c a -o yaml
set serviceaccount deploy/web robot -n demo
set sa deploy web robot -n demo
set serviceaccount deploy/web -n demo
set serviceaccount cm/settings robot -n demo
set serviceaccount cronjob/nightly robot -n demo --dry-run=client
set selector svc web app=other,tier=x -n demo
set selector svc web app=other,tier=x -n demo
set selector deploy web app=other -n demo
set selector svc web -n demo
get svc web -n demo -o jsonpath={.spec.selector}
create role reader --verb=get --resource=pods -n demo
create rolebinding rb --role=reader --user=jane -n demo
set subject rolebinding rb --user=joe --group=ops --serviceaccount=demo:robot -n demo
set subject rolebinding rb --user=joe -n demo
set subject rolebinding rb -n demo
set subject rolebinding rb --serviceaccount=wrong -n demo
set subject deploy/web --user=joe -n demo
get rolebinding rb -n demo -o jsonpath={.subjects[*].name}
set wrong
autoscale deploy web --max=5 -n demo
autoscale deploy web --max=6 -n demo
autoscale deploy/web --min=2 --max=5 --cpu=70% --name=second -n demo --dry-run=client -o yaml
autoscale deploy/web --min=2 --max=5 --cpu=500m --memory=200Mi --name=third -n demo --dry-run=client -o yaml
autoscale deploy/web --max=5 --cpu=500 --memory=60% --name=fourth -n demo --dry-run=server
autoscale deploy/web --min=6 --max=5 -n demo
autoscale deploy/web -n demo
autoscale cm/settings --max=5 -n demo
autoscale deploy/missing --max=5 -n demo
autoscale deploy/web --max=5 --cpu=x -n demo
autoscale rs,deploy --max=5 -n demo
certificate approve first
certificate approve first
certificate deny first
certificate deny second
certificate deny second --force
certificate approve missing
certificate approve
certificate
get csr second -o jsonpath={.status.conditions[*].reason}
auth reconcile -f - < rights
auth reconcile -f - < rights
auth reconcile -f - < fewer
auth reconcile -f - --remove-extra-permissions --remove-extra-subjects --dry-run=client < fewer
auth reconcile -f - --remove-extra-permissions --remove-extra-subjects < fewer
auth reconcile -f - -o name < fewer
get role reader -n made -o jsonpath={.rules}
auth reconcile
config set-cluster one --kubeconfig=<dir>/config --server=https://one.example:6443
config set-cluster one --kubeconfig=<dir>/config --certificate-authority=<dir>/ca.pem --embed-certs
config set-cluster two --kubeconfig=<dir>/config --server=https://two.example --insecure-skip-tls-verify --tls-server-name=x --proxy-url=http://p:1
config set-cluster two --kubeconfig=<dir>/config --certificate-authority=<dir>/ca.pem --insecure-skip-tls-verify
config set-cluster --kubeconfig=<dir>/config
config set-credentials jane --kubeconfig=<dir>/config --token=abc
config set-credentials joe --kubeconfig=<dir>/config --username=joe --password=pw
config set-credentials joe --kubeconfig=<dir>/config --token=abc --username=joe
config set-credentials cert --kubeconfig=<dir>/config --client-certificate=<dir>/ca.pem --client-key=<dir>/ca.pem --embed-certs
config set-context c1 --kubeconfig=<dir>/config --cluster=one --user=jane --namespace=n
config set-context c1 --kubeconfig=<dir>/config --cluster=two
config set-context --current --kubeconfig=<dir>/config --namespace=n
config use-context c1 --kubeconfig=<dir>/config
config set-context --current --kubeconfig=<dir>/config --namespace=m
config get-contexts --kubeconfig=<dir>/config
config get-contexts c1 --no-headers --kubeconfig=<dir>/config
config get-contexts -o name --kubeconfig=<dir>/config
config get-contexts missing --kubeconfig=<dir>/config
config get-clusters --kubeconfig=<dir>/config
config get-users --kubeconfig=<dir>/config
config view --kubeconfig=<dir>/config
config view --kubeconfig=<dir>/config --raw
config view --kubeconfig=<dir>/config --minify
config view --kubeconfig=<dir>/config -o jsonpath={.users[0].name}
config rename-context c1 c2 --kubeconfig=<dir>/config
config rename-context c1 c2 --kubeconfig=<dir>/config
config current-context --kubeconfig=<dir>/config
config set clusters.one.server https://changed.example --kubeconfig=<dir>/config
config set contexts.c2.namespace x --kubeconfig=<dir>/config
config set users.jane.client-key-data text --set-raw-bytes=true --kubeconfig=<dir>/config
config set current-context c9 --kubeconfig=<dir>/config
config set wrong.one.server x --kubeconfig=<dir>/config
config set clusters.one.wrong x --kubeconfig=<dir>/config
config set clusters.one.insecure-skip-tls-verify true --kubeconfig=<dir>/config
config view --kubeconfig=<dir>/config --raw
config unset contexts.c2.namespace --kubeconfig=<dir>/config
config unset users.jane --kubeconfig=<dir>/config
config unset current-context --kubeconfig=<dir>/config
config unset users.none --kubeconfig=<dir>/config
config delete-context c2 --kubeconfig=<dir>/config
config delete-context c2 --kubeconfig=<dir>/config
config delete-cluster two --kubeconfig=<dir>/config
config delete-cluster two --kubeconfig=<dir>/config
config delete-user joe --kubeconfig=<dir>/config
config delete-user joe --kubeconfig=<dir>/config
config view --kubeconfig=<dir>/config
plugin list
plugin list --name-only
hello a -b
hello big-world c
cluster-info
version --client -o wrong
wait deploy/web -n demo --for=jsonpath={.spec.replicas}=2 --timeout=1s
wait deploy/web -n demo --for=jsonpath={.spec.replicas}=3 --timeout=1s
wait deploy/web -n demo --for=jsonpath={.spec.missing} --timeout=1s
wait deploy/web -n demo --for=create --timeout=1s
wait deploy/none -n demo --for=create --timeout=1s
wait deploy/web -n demo --for=wrong
wait deploy/web -n demo
create job run1 --from=cronjob/nightly -n demo
get job run1 -n demo -o jsonpath={.metadata.annotations}
create job run2 --from=deploy/web -n demo
create token robot -n demo --duration=x
create token missing -n demo
create configmap env -n demo --from-env-file=<dir>/env.list --dry-run=client -o yaml
create configmap hashed -n demo --from-literal=a=b --append-hash --dry-run=client -o yaml
create secret generic hashed -n demo --from-literal=a=b --append-hash --dry-run=client -o yaml
create secret tls t -n demo --cert=<dir>/ca.pem --key=<dir>/ca.pem
create ingress i -n demo --rule=a.example/=web:80 --annotation=k=v --dry-run=client -o yaml
get deploy web -n demo --subresource=scale
apply view-last-applied deploy/web -n demo
apply view-last-applied cm settings -n demo -o json
apply view-last-applied rolebinding rb -n demo
apply set-last-applied -f <dir>/deployment.yaml -n demo
label -f <dir>/deployment.yaml --local a=b -o yaml
annotate -f <dir>/deployment.yaml --local a=b -o yaml
patch -f <dir>/deployment.yaml --local --type=merge -p {"spec":{"replicas":5}} -o yaml
cluster-info -n demo
config set-credentials plug --exec-command=he-no-such-plugin --kubeconfig=<dir>/plugin
config set-credentials plug --exec-api-version=client.authentication.k8s.io/v1 --exec-arg=a,b --exec-arg=c --kubeconfig=<dir>/plugin
config set-credentials plug --exec-env=A=b --exec-interactive-mode=Never --kubeconfig=<dir>/plugin
config view --kubeconfig=<dir>/plugin
config set-credentials plug --exec-env=A- --exec-env=C=e --exec-provide-cluster-info --kubeconfig=<dir>/plugin
config set-credentials plug --exec-interactive-mode=Maybe --kubeconfig=<dir>/plugin
config set-credentials other --exec-arg=a --kubeconfig=<dir>/plugin
config view --kubeconfig=<dir>/plugin
config set-cluster far --server=https://127.0.0.1:1 --kubeconfig=<dir>/plugin
config set-context c --cluster=far --user=plug --kubeconfig=<dir>/plugin
config use-context c --kubeconfig=<dir>/plugin
get --raw /version --kubeconfig=<dir>/plugin
config set-credentials plug --exec-command=/nonexistent/plugin --kubeconfig=<dir>/plugin
get --raw /version --kubeconfig=<dir>/plugin
config set-credentials plug --exec-command=false --kubeconfig=<dir>/plugin
get --raw /version --kubeconfig=<dir>/plugin
config set-credentials plug --exec-interactive-mode=Always --kubeconfig=<dir>/plugin
get --raw /version --kubeconfig=<dir>/plugin
config set-credentials plug --exec-api-version=client.authentication.k8s.io/v1alpha1 --kubeconfig=<dir>/plugin
get --raw /version --kubeconfig=<dir>/plugin
config set-credentials plug --exec-api-version= --kubeconfig=<dir>/plugin
get --raw /version --kubeconfig=<dir>/plugin
cluster-info dump --output-directory=<dir>/state --namespaces=none
`,
};
