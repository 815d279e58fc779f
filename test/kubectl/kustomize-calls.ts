/** Calls of `kustomize`, `-k`, `diff` and `apply --prune`, with their kustomizations. */
import type { Scenario } from './calls.ts';

export const KUSTOMIZE_SCENARIO: Scenario = {
  name: 'kustomize',
  manifests: {
    one: `
apiVersion: v1
kind: ConfigMap
metadata: {name: one, namespace: default, labels: {set: pruned}}
data: {a: b}
`,
    two: `
apiVersion: v1
kind: ConfigMap
metadata: {name: two, namespace: default, labels: {set: pruned}}
data: {a: b}
`,
    changed: `
apiVersion: v1
kind: ConfigMap
metadata: {name: one, namespace: default, labels: {set: pruned}}
data: {a: c}
`,
    secret: `
apiVersion: v1
kind: Secret
metadata: {name: hidden, namespace: default}
stringData: {password: old, same: same}
`,
    newSecret: `
apiVersion: v1
kind: Secret
metadata: {name: hidden, namespace: default}
stringData: {password: new, same: same}
`,
    broken: `
apiVersion: v1
kind: ConfigMap
metadata: {name: one, namespace: default}
data: [1]
`,
  },
  files: {
    'base/kustomization.yaml': `
resources: [app.yaml, rights.yaml]
configMapGenerator:
- name: settings
  literals: [color=blue, quoted="text here"]
  files: [app.conf, renamed=app.conf]
  envs: [env.list]
secretGenerator:
- name: key
  literals: [password=hidden]
  type: Opaque
`,
    'base/app.conf': 'line one\nline two\n',
    'base/env.list': '# comment\nONE=1\nTWO=two words\n',
    'base/app.yaml': `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      serviceAccountName: robot
      imagePullSecrets: [{name: key}]
      initContainers: [{name: init, image: registry.example/init@sha256:0123}]
      containers:
      - name: main
        image: registry.example:5000/web:1
        envFrom: [{configMapRef: {name: settings}}]
        env: [{name: P, valueFrom: {secretKeyRef: {name: key, key: password}}}]
      volumes: [{name: c, configMap: {name: settings}}, {name: s, secret: {secretName: key}}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  rules:
  - http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "0 3 * * *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: registry.example/job}]}}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
---
apiVersion: v1
kind: Namespace
metadata: {name: demo}
`,
    'base/rights.yaml': `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: robot, namespace: demo}, {kind: ServiceAccount, name: default, namespace: x}]
`,
    'overlay/kustomization.yaml': `
resources: [../base]
namespace: stage
namePrefix: pre-
nameSuffix: -suf
commonLabels: {team: blue}
commonAnnotations: {note: hello}
images:
- {name: 'registry.example:5000/web', newTag: "2"}
- {name: registry.example/init, newName: other.example/init}
- {name: registry.example/job, digest: sha256:abcd}
replicas: [{name: web, count: 4}]
configMapGenerator:
- name: settings
  behavior: merge
  literals: [color=green, extra=1]
patches:
- path: patch.yaml
- target: {kind: Deployment, name: web}
  patch: |-
    - op: add
      path: /spec/template/spec/containers/0/args
      value: [--verbose]
- target: {kind: Service}
  patch: |-
    apiVersion: v1
    kind: Service
    metadata: {name: any}
    spec: {type: NodePort}
patchesStrategicMerge:
- |-
  apiVersion: v1
  kind: Namespace
  metadata: {name: demo}
  $patch: delete
`,
    'overlay/patch.yaml': `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      containers:
      - name: main
        resources: {limits: {memory: 64Mi}}
        env: [{name: Q, value: "1"}]
      - name: side
        image: registry.example/side:1
`,
    'labels/kustomization.yaml': `
resources: [../base]
components: [../component]
labels:
- pairs: {plain: "yes"}
- pairs: {selected: "yes"}
  includeSelectors: true
- pairs: {templated: "yes"}
  includeTemplates: true
generatorOptions: {disableNameSuffixHash: true, labels: {made: by}}
configMapGenerator: [{name: plain, literals: [a=b]}]
`,
    'component/kustomization.yaml': `
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
resources: [extra.yaml]
patches:
- target: {kind: Deployment}
  patch: |-
    [{"op": "replace", "path": "/spec/replicas", "value": 7}]
`,
    'component/extra.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\ndata: {x: y}\n',
    'applied/kustomization.yaml': `
namespace: default
namePrefix: k-
configMapGenerator: [{name: made, literals: [a=b]}]
`,
    'unknown/kustomization.yaml': 'resources: []\nnonsense: 1\n',
    'helm/kustomization.yaml': 'helmCharts: [{name: x}]\n',
    'missing/kustomization.yaml': 'resources: [absent.yaml]\n',
    'outside/kustomization.yaml': 'configMapGenerator: [{name: x, files: [../base/app.conf]}]\n',
    'nomatch/kustomization.yaml': `
resources: [../component/extra.yaml]
`,
    'unmatched/kustomization.yaml': `
resources: [../applied]
patches: [{patch: "apiVersion: v1\\nkind: ConfigMap\\nmetadata: {name: none}\\ndata: {a: c}\\n"}]
`,
    'crd/kustomization.yaml': `
resources: [crd.yaml]
namePrefix: p-
patches: [{path: patch.yaml}]
`,
    'crd/crd.yaml': `
apiVersion: example.com/v1
kind: Widget
metadata: {name: w}
spec: {size: 1, parts: [{name: a}], secretName: key, keep: yes}
`,
    'crd/patch.yaml': `
apiVersion: example.com/v1
kind: Widget
metadata: {name: w}
spec: {size: 2, parts: [{name: b}]}
`,
    'empty/.keep': '',
  },
  calls: `
kustomize <dir>/base
kustomize <dir>/overlay
kustomize <dir>/labels
kustomize <dir>/crd
kustomize <dir>/unknown
kustomize <dir>/helm
kustomize <dir>/missing
kustomize <dir>/outside
kustomize <dir>/nomatch
kustomize <dir>/unmatched
kustomize <dir>/empty
apply -k <dir>/applied
apply -k <dir>/applied
get -k <dir>/applied
diff -k <dir>/applied
delete -k <dir>/applied
create -k <dir>/applied --dry-run=client
apply -k <dir>/applied -f <dir>/base/app.yaml
apply -f - < one
apply -f - < two
diff -f - < one
diff -f - < changed
diff -f - --server-side < changed
apply -f - < secret
diff -f - < newSecret
diff -f - --show-secrets < newSecret
diff -f - < broken
diff
diff -f <dir>/base/rights.yaml
apply -f - --prune -l set=pruned < one
apply -f - --prune -l set=pruned --prune-allowlist=core/v1/ConfigMap < one
get cm -l set=pruned -o name
apply -f - < two
apply -f - --prune -l set=pruned --prune-allowlist=core/v1/ConfigMap --dry-run=client < one
apply -f - --prune -l set=pruned --prune-allowlist=core/v1/Secret < one
apply -f - --prune -l set=pruned --prune-allowlist=core/v1/ConfigMap --dry-run=server < one
diff -f - --prune -l set=pruned --prune-allowlist=core/v1/ConfigMap < one
apply -f - --prune -l set=pruned --prune-allowlist=wrong < one
apply -f - --prune < one
get cm -l set=pruned -o name
`,
};
