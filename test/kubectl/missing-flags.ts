/**
 * Verbs and flags of kubectl 1.36 that this client lacks, with the reason. `flags.test.ts` fails for an obsolete entry.
 */

export const MISSING_VERBS: Readonly<Record<string, string>> = {
  'apply edit-last-applied': 'rare: edit the manifest and apply it',
  completion: 'hyperedge completion writes the completion of both',
  kuberc: 'preferences of kubectl are not read',
  'kuberc set': 'preferences of kubectl are not read',
  'kuberc view': 'preferences of kubectl are not read',
};

/** Flags that many verbs share. */
export const MISSING_EVERYWHERE: Readonly<Record<string, string>> = {
  template: 'Go templates are not built in; jsonpath and custom-columns work',
};

export const MISSING_GLOBAL_FLAGS: Readonly<Record<string, string>> = {
  'as-user-extra': 'rare: impersonation with extra fields',
  'cache-dir': '$KUBECACHEDIR names the directory',
  'disable-compression': 'responses are never compressed',
  kuberc: 'preferences of kubectl are not read',
  'log-flush-frequency': 'there is no log of requests',
  'match-server-version': 'the client works with any version',
  password: 'API servers since 1.19 know no basic authentication',
  profile: 'for developers of kubectl',
  'profile-output': 'for developers of kubectl',
  username: 'API servers since 1.19 know no basic authentication',
  vmodule: 'there is no log of requests',
};

export const MISSING_FLAGS: Readonly<Record<string, string>> = {
  'create --edit': 'rare',
  'create --windows-line-endings': 'for Windows',
  'create secret docker-registry --from-file': 'create secret generic has it',
  'expose --load-balancer-ip': 'deprecated field',
  'expose --override-type': 'rare',
  'expose --overrides': 'rare',
  'expose --save-config': 'rare',
  'run --cascade': 'only for --filename',
  'run --detach-keys': 'not built yet',
  'run --filename': 'kubectl ignores it except with --rm',
  'run --force': 'only for --filename',
  'run --grace-period': 'only for --filename',
  'run --kustomize': 'only for --filename',
  'run --override-type': 'not built yet',
  'run --overrides': 'not built yet',
  'run --recursive': 'only for --filename',
  'run --save-config': 'rare',
  'run --timeout': 'only for --filename',
  'run --wait': 'only for --filename',
  'edit --allow-missing-template-keys': 'the editor shows YAML or JSON',
  'edit --output-patch': 'rare',
  'edit --save-config': 'rare',
  'edit --show-managed-fields': 'managed fields cannot be edited',
  'edit --windows-line-endings': 'for Windows',
  'delete --interactive': 'not built yet',
  'delete --raw': 'rare',
  'top node --show-swap': 'the metrics have no swap',
  'top pod --show-swap': 'the metrics have no swap',
  'drain --skip-wait-for-delete-timeout': 'rare',
  'logs --insecure-skip-tls-verify-backend': 'rare',
  'attach --detach-keys': 'not built yet',
  'attach --pod-running-timeout': 'not built yet',
  'exec --filename': 'name the pod',
  'apply --force': 'replace --force deletes and creates again',
  'apply --openapi-patch': 'the merge keys are always those of the server',
  'apply --subresource': 'rare',
  'replace --raw': 'rare',
  'replace --save-config': 'rare',
  'replace --wait': 'only for --force',
  'wait --local': 'rare',
  'config set-credentials --auth-provider': 'removed from client-go',
  'config set-credentials --auth-provider-arg': 'removed from client-go',
  'kustomize --as-current-user': 'for plug-ins, charts and files outside of the directory, which are not supported',
  'kustomize --enable-alpha-plugins':
    'for plug-ins, charts and files outside of the directory, which are not supported',
  'kustomize --enable-helm': 'for plug-ins, charts and files outside of the directory, which are not supported',
  'kustomize --env': 'for plug-ins, charts and files outside of the directory, which are not supported',
  'kustomize --helm-api-versions': 'for plug-ins, charts and files outside of the directory, which are not supported',
  'kustomize --helm-command': 'for plug-ins, charts and files outside of the directory, which are not supported',
  'kustomize --helm-debug': 'for plug-ins, charts and files outside of the directory, which are not supported',
  'kustomize --helm-kube-version': 'for plug-ins, charts and files outside of the directory, which are not supported',
  'kustomize --load-restrictor': 'for plug-ins, charts and files outside of the directory, which are not supported',
  'kustomize --mount': 'for plug-ins, charts and files outside of the directory, which are not supported',
  'kustomize --network': 'for plug-ins, charts and files outside of the directory, which are not supported',
  'kustomize --network-name': 'for plug-ins, charts and files outside of the directory, which are not supported',
  'debug --filename': 'name the pod',
};
