/** Calls of `apply --prune --applyset`. kubectl knows the flag with KUBECTL_APPLYSET=true. */
import type { Scenario } from './calls.ts';

const map = (name: string, namespace: string, data = 'a: b'): string => `
apiVersion: v1
kind: ConfigMap
metadata: {name: ${name}, namespace: ${namespace}}
data: {${data}}
---`;

const parent = (name: string, labels: string, annotations: string): string => `
apiVersion: v1
kind: ConfigMap
metadata: {name: ${name}, namespace: sets, labels: {${labels}}, annotations: {${annotations}}}
---`;

const TOOLING = '"applyset.kubernetes.io/tooling": "kubectl/v1"';
const KINDS = '"applyset.kubernetes.io/contains-group-kinds": ""';

const KEY = `
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: sets}
---`;

const ROLE = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: set-role}
rules: []
---`;

const ALL = `${KEY}${ROLE}${map('one', 'sets')}${map('two', 'sets')}${map('three', 'other')}`;

export const APPLY_SET_SCENARIO: Scenario = {
  name: 'applyset',
  variables: { KUBECTL_APPLYSET: 'true' },
  manifests: {
    spaces: ['sets', 'other', 'last']
      .map((name) => `apiVersion: v1\nkind: Namespace\nmetadata: {name: ${name}}\n---\n`)
      .join(''),
    all: ALL,
    // kubectl prunes kinds and namespaces in a random order, so each of these manifests omits one more object than the
    // previous one.
    fewer: `${KEY}${ROLE}${map('one', 'sets', 'a: c')}${map('three', 'other')}`,
    keyless: `${ROLE}${map('one', 'sets')}${map('three', 'other')}`,
    roleless: `${map('one', 'sets')}${map('three', 'other')}`,
    last: map('four', 'last'),
    first: map('one', 'sets'),
    broken: `${map('one', 'sets')}\napiVersion: none.example/v1\nkind: Nothing\nmetadata: {name: x}\n`,
    labelled: `
apiVersion: v1
kind: ConfigMap
metadata: {name: labelled, namespace: sets, labels: {applyset.kubernetes.io/part-of: mine}}
`,
    parents: [
      parent('plain', '', ''),
      parent('foreign', '', `"applyset.kubernetes.io/tooling": "helm/v3", ${KINDS}`),
      parent('unlabelled', '', `${TOOLING}, ${KINDS}`),
      parent('mislabelled', '"applyset.kubernetes.io/id": "applyset-x-v1"', `${TOOLING}, ${KINDS}`),
      parent('bare', '"applyset.kubernetes.io/id": "applyset-O2pnoxdkfc-MnTcA5saSZo_P_2fJ_29f2g7gBQu0L-Q-v1"', TOOLING),
    ].join(''),
    crds: ['sets', 'plains']
      .map(
        (name) => `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ${name}.example.com, labels: {${name === 'sets' ? 'applyset.kubernetes.io/is-parent-type: "true"' : ''}}}
spec:
  group: example.com
  names: {plural: ${name}, singular: ${name.slice(0, -1)}, kind: ${name === 'sets' ? 'Set' : 'Plain'}}
  scope: Cluster
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---`,
      )
      .join(''),
    root: `
apiVersion: example.com/v1
kind: Set
metadata:
  name: root
  labels: {applyset.kubernetes.io/id: applyset-ROOT-v1}
  annotations: {${TOOLING}, ${KINDS}}
`,
  },
  files: {},
  calls: `
apply -f - < spaces
apply -f - --applyset=web -n sets < all
apply -f - --prune --applyset=web < all
apply -f - --prune --applyset=web -n sets --all < all
apply -f - --prune --applyset=web -n sets -l a=b < all
apply -f - --prune --applyset=web -n sets --prune-allowlist=core/v1/ConfigMap < all
apply -f - --prune --applyset=configmap/ -n sets < all
apply -f - --prune --applyset=nothing/web -n sets < all
apply -f - --prune --applyset=nothing.example/web -n sets < all
apply -f - --prune --applyset=pods/web -n sets < all
apply -f - --prune --applyset=deployment/web -n sets < all
apply -f - --prune --applyset=deployment/web < all
apply -f - --all -l a=b < all
apply -f - --prune -l a=b --server-side < all
apply -f - --prune --applyset=configmap/web -n sets --dry-run=client < all
get cm web -n sets
apply -f - --prune --applyset=configmap/web -n sets --dry-run=server < all
get cm web -n sets
apply -f - --prune --applyset=configmap/web -n other < all
apply -f - --prune --applyset=configmap/web -n sets < first
get cm web -n sets -o jsonpath={.metadata.annotations}{.metadata.labels}{.metadata.managedFields[*].manager}
get cm one -n sets -o jsonpath={.metadata.labels}{.metadata.annotations}
apply -f - --prune --applyset=ConfigMap/whole < all
apply -f - --prune --applyset=web --namespace=sets < first
get secret web -n sets -o jsonpath={.metadata.labels}
delete secret web -n sets
apply -f - < crds
wait crd/sets.example.com crd/plains.example.com --for=condition=Established --timeout=20s
apply -f - --prune --applyset=plains.example.com/root < all
apply -f - --prune --applyset=sets.example.com/root < all
apply -f - < root
apply -f - --prune --applyset=sets.example.com/root < all
label sets.example.com root --overwrite applyset.kubernetes.io/id=applyset-bLplo5PFJed0wjHC2-vU4GkbOttTGLgjGSzPe86AFYk-v1
apply -f - --prune --applyset=set.example.com/root < all
get sets.example.com root -o jsonpath={.metadata.annotations}
apply -f - --prune --applyset=sets.example.com/root --dry-run=client < fewer
apply -f - --prune --applyset=sets.example.com/root --dry-run=server < fewer
apply -f - --prune --applyset=sets.example.com/root < broken
get sets.example.com root -o jsonpath={.metadata.annotations}
apply -f - --prune --applyset=sets.example.com/root -o name < fewer
get sets.example.com root -o jsonpath={.metadata.annotations}
get cm one two -n sets -o name
apply -f - --prune --applyset=sets.example.com/root -o yaml --cascade=foreground < keyless
get secret key -n sets
apply -f - --prune --applyset=sets.example.com/root < roleless
get clusterrole set-role
get sets.example.com root -o jsonpath={.metadata.annotations}
apply -f - --prune --applyset=sets.example.com/root < first
apply -f - --prune --applyset=sets.example.com/root --server-side < last
get sets.example.com root -o jsonpath={.metadata.annotations}
get cm three -n other
apply -f - --prune --applyset=sets.example.com/root < labelled
apply -f - < parents
apply -f - --prune --applyset=configmap/plain -n sets < last
apply -f - --prune --applyset=configmap/foreign -n sets < last
apply -f - --prune --applyset=configmap/unlabelled -n sets < last
apply -f - --prune --applyset=configmap/mislabelled -n sets < last
apply -f - --prune --applyset=configmap/bare -n sets < last
annotate cm bare -n sets applyset.kubernetes.io/contains-group-kinds=Gone.example
apply -f - --prune --applyset=configmap/bare -n sets < last
annotate cm bare -n sets applyset.kubernetes.io/contains-group-kinds- applyset.kubernetes.io/contains-group-resources=configmaps,deployments.apps
apply -f - --prune --applyset=configmap/bare -n sets < first
get cm bare -n sets -o jsonpath={.metadata.annotations}
`,
};
