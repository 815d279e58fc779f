/** Calls whose output differs from kubectl's on purpose, with the reason. */
export const DIFFERENCES: Readonly<Record<string, string>> = {
  'get cm -n demo -o wrong': 'the message lists the formats of this client, which has no Go templates and no KYAML',
  frobnicate: 'kubectl ends with a hint at similar commands',
  'autoscale deploy web --max=6 -n demo':
    'kubectl hides the reason, an autoscaler of that name, behind its second attempt',
  'kustomize <dir>/helm': 'charts are not supported; the message names the file and the field',
  'diff -f - < broken': 'the server names the value of a merge patch; kubectl sends a strategic one',
  'diff -f - --prune -l set=pruned --prune-allowlist=core/v1/ConfigMap < one':
    'kubectl shows managedFields of pruned objects without --show-managed-fields',
  certificate: 'the help text',
  'config set-cluster --kubeconfig=<dir>/config': 'kubectl prints the help text before the error',
  'debug one -n demo --image=registry.example/d:1 -c absent --custom=<dir>/absent.yaml':
    'the reason is worded as for other files of this client',
  'config view --kubeconfig=<dir>/absent -o json': 'kubectl prints the fields in the order of its types',
  'config set clusters.one.wrong x --kubeconfig=<dir>/config': 'kubectl prints addresses of its memory',
};
