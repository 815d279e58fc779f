/** Samples for the kinds of OpenShift's groups, as in samples.ts. Keys are those of sampleNameOf. */
export const OPENSHIFT_CONTENTS: Readonly<Record<string, object>> = {
  'Route.route.openshift.io': {
    spec: {
      host: 'shop.example.com',
      path: '/cart',
      to: { kind: 'Service', name: 'shop', weight: 80 },
      alternateBackends: [{ kind: 'Service', name: 'shop-next', weight: 20 }],
      port: { targetPort: 'http' },
      tls: { termination: 'edge', insecureEdgeTerminationPolicy: 'Redirect' },
    },
  },
  'Template.template.openshift.io': {
    message: 'done',
    objects: [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'm' } }],
    parameters: [
      { name: 'NAME', value: 'x', required: true },
      { name: 'PW', generate: 'expression', from: '[a-z]{8}' },
    ],
    labels: { app: 'x' },
  },
  'TemplateInstance.template.openshift.io': {
    spec: { template: { metadata: { name: 't' }, objects: [], parameters: [{ name: 'A' }] }, secret: { name: 's' } },
  },
  'BrokerTemplateInstance.template.openshift.io': {
    spec: { templateInstance: { name: 'i', namespace: 'n' }, secret: { name: 's', namespace: 'n' }, bindingIDs: ['b'] },
  },
  'Image.image.openshift.io': {
    metadata: { name: `sha256:${'a'.repeat(64)}` },
    dockerImageReference: `lab.local/app@sha256:${'a'.repeat(64)}`,
    dockerImageMetadata: { kind: 'DockerImage', apiVersion: '1.0' },
    dockerImageMetadataVersion: '1.0',
  },
  'ImageStream.image.openshift.io': {
    spec: {
      lookupPolicy: { local: true },
      tags: [{ name: '1', from: { kind: 'DockerImage', name: 'lab.local/app:1' }, importPolicy: {} }],
    },
  },
  'Machine.machine.openshift.io': {
    spec: {
      metadata: { labels: { zone: 'a' } },
      lifecycleHooks: { preDrain: [{ name: 'example.com/Backup', owner: 'backup' }] },
      taints: [{ key: 'lab', effect: 'NoSchedule' }],
      providerSpec: { value: { hostSelector: { matchLabels: { rack: '3' } }, pool: 'infra' } },
    },
  },
  'MachineSet.machine.openshift.io': {
    spec: {
      replicas: 2,
      selector: { matchLabels: { set: 'x' } },
      template: { metadata: { labels: { set: 'x' } }, spec: { providerSpec: { value: {} } } },
    },
  },
  'MachineHealthCheck.machine.openshift.io': {
    spec: {
      selector: { matchLabels: { set: 'x' } },
      unhealthyConditions: [{ type: 'Ready', status: 'False', timeout: '5m' }],
      maxUnhealthy: '40%',
    },
  },
  'APIServer.config.openshift.io': { metadata: { name: 'cluster' }, spec: {} },
  'Authentication.config.openshift.io': { metadata: { name: 'cluster' }, spec: {} },
  'Build.config.openshift.io': { metadata: { name: 'cluster' }, spec: {} },
  'Console.config.openshift.io': { metadata: { name: 'cluster' }, spec: {} },
  'DNS.config.openshift.io': { metadata: { name: 'cluster' }, spec: { baseDomain: 'lab.example' } },
  'FeatureGate.config.openshift.io': { metadata: { name: 'cluster' }, spec: {} },
  'Image.config.openshift.io': { metadata: { name: 'cluster' }, spec: {} },
  'Infrastructure.config.openshift.io': { metadata: { name: 'cluster' }, spec: { platformSpec: { type: 'None' } } },
  'Ingress.config.openshift.io': { metadata: { name: 'cluster' }, spec: { domain: 'apps.lab.example' } },
  'Network.config.openshift.io': {
    metadata: { name: 'cluster' },
    spec: { clusterNetwork: [{ cidr: '10.128.0.0/14', hostPrefix: 23 }], serviceNetwork: ['172.30.0.0/16'] },
  },
  'OAuth.config.openshift.io': { metadata: { name: 'cluster' }, spec: {} },
  'OperatorHub.config.openshift.io': { metadata: { name: 'cluster' }, spec: {} },
  'Project.config.openshift.io': {
    metadata: { name: 'cluster' },
    spec: { projectRequestMessage: 'Ask ann.', projectRequestTemplate: { name: 'request' } },
  },
  'Proxy.config.openshift.io': { metadata: { name: 'cluster' }, spec: {} },
  'Scheduler.config.openshift.io': { metadata: { name: 'cluster' }, spec: {} },
  'ClusterOperator.config.openshift.io': {
    spec: {},
    status: {
      versions: [{ name: 'operator', version: '1.0' }],
      conditions: [
        { type: 'Available', status: 'True', lastTransitionTime: '2026-01-02T03:00:00Z' },
        { type: 'Degraded', status: 'True', lastTransitionTime: '2026-01-02T03:00:00Z', message: 'a host is down' },
      ],
    },
  },
  'ClusterVersion.config.openshift.io': {
    metadata: { name: 'version' },
    spec: { clusterID: '00000000-0000-4000-8000-000000000000', channel: 'stable' },
  },
  'Etcd.operator.openshift.io': { metadata: { name: 'cluster' }, spec: { managementState: 'Managed' } },
  'KubeAPIServer.operator.openshift.io': {
    metadata: { name: 'cluster' },
    spec: {
      managementState: 'Managed',
      logLevel: 'Debug',
      forceRedeploymentReason: 'new key',
      failedRevisionLimit: 3,
      unsupportedConfigOverrides: { apiServerArguments: { 'audit-log-maxage': ['3'] } },
    },
    status: {
      latestAvailableRevision: 4,
      nodeStatuses: [
        { nodeName: 'm1', currentRevision: 4 },
        { nodeName: 'm2', currentRevision: 3, targetRevision: 4 },
      ],
      conditions: [{ type: 'NodeInstallerProgressing', status: 'True', message: '1 nodes are at revision 3' }],
    },
  },
  'KubeControllerManager.operator.openshift.io': { metadata: { name: 'cluster' }, spec: {} },
  'KubeScheduler.operator.openshift.io': {
    metadata: { name: 'cluster' },
    spec: { operatorLogLevel: 'Normal' },
  },
  'MachineConfiguration.operator.openshift.io': {
    metadata: { name: 'cluster' },
    spec: {
      managementState: 'Managed',
      nodeDisruptionPolicy: {
        files: [
          { path: '/etc/chrony.conf', actions: [{ type: 'Restart', restart: { serviceName: 'chronyd.service' } }] },
        ],
        units: [{ name: 'auditd.service', actions: [{ type: 'Drain' }, { type: 'DaemonReload' }] }],
        sshkey: { actions: [{ type: 'None' }] },
      },
    },
  },
  'Network.operator.openshift.io': { metadata: { name: 'cluster' }, spec: { serviceNetwork: ['172.30.0.0/16'] } },
  'DNS.operator.openshift.io': { metadata: { name: 'default' }, spec: {} },
  'Authentication.operator.openshift.io': { metadata: { name: 'cluster' }, spec: { logLevel: 'Normal' } },
  'Config.operator.openshift.io': { metadata: { name: 'cluster' }, spec: {} },
  'Storage.operator.openshift.io': { metadata: { name: 'cluster' }, spec: {} },
  'IngressController.operator.openshift.io': {
    metadata: { name: 'default', namespace: 'openshift-ingress-operator' },
    spec: { domain: 'apps.lab.example' },
  },
  'ClusterResourceQuota.quota.openshift.io': {
    spec: { selector: { labels: { matchLabels: { team: 'blue' } } }, quota: { hard: { pods: '10' } } },
  },
  'RoleBindingRestriction.authorization.openshift.io': {
    spec: { userrestriction: { users: ['ann'], groups: ['blue'], labels: [{ matchLabels: { team: 'blue' } }] } },
  },
  'SecurityContextConstraints.security.openshift.io': {
    priority: 5,
    allowPrivilegedContainer: false,
    allowedCapabilities: ['NET_BIND_SERVICE'],
    requiredDropCapabilities: ['KILL'],
    runAsUser: { type: 'MustRunAsRange', uidRangeMin: 1000, uidRangeMax: 2000 },
    seLinuxContext: { type: 'MustRunAs', seLinuxOptions: { level: 's0:c1,c0' } },
    fsGroup: { type: 'MustRunAs', ranges: [{ min: 5, max: 6 }] },
    volumes: ['configMap', 'secret'],
    seccompProfiles: ['runtime/default'],
    users: ['dev'],
  },
  'RangeAllocation.security.openshift.io': { range: '1000000000-1999999999/10000', data: 'AQ==' },
  'User.user.openshift.io': { fullName: 'Dev Eloper', identities: ['htpasswd:dev'], groups: ['devs'] },
  'Identity.user.openshift.io': {
    metadata: { name: 'htpasswd:dev' },
    providerName: 'htpasswd',
    providerUserName: 'dev',
    user: { name: 'dev', uid: '7ac2b4e0-0000-4000-8000-000000000001' },
    extra: { email: 'dev@example.com' },
  },
  'Group.user.openshift.io': { users: ['dev', 'ops'] },
  'UserIdentityMapping.user.openshift.io': { identity: { name: 'htpasswd:dev' }, user: { name: 'dev' } },
  'OAuthClient.oauth.openshift.io': {
    secret: 'not-a-secret',
    redirectURIs: ['https://console.example.com/auth/callback'],
    grantMethod: 'prompt',
    accessTokenMaxAgeSeconds: 3600,
    scopeRestrictions: [{ literals: ['user:info'] }],
  },
  'OAuthAccessToken.oauth.openshift.io': {
    metadata: { name: `sha256~${'a'.repeat(43)}` },
    clientName: 'console',
    expiresIn: 86_400,
    scopes: ['user:full'],
    userName: 'dev',
    userUID: '7ac2b4e0-0000-4000-8000-000000000001',
  },
  'OAuthAuthorizeToken.oauth.openshift.io': {
    metadata: { name: `sha256~${'b'.repeat(43)}` },
    clientName: 'console',
    expiresIn: 300,
    scopes: ['user:full'],
    redirectURI: 'https://console.example.com/auth/callback',
    userName: 'dev',
    userUID: '7ac2b4e0-0000-4000-8000-000000000001',
    codeChallenge: 'c'.repeat(43),
    codeChallengeMethod: 'S256',
  },
  'OAuthClientAuthorization.oauth.openshift.io': {
    metadata: { name: 'dev:console' },
    clientName: 'console',
    userName: 'dev',
    userUID: '7ac2b4e0-0000-4000-8000-000000000001',
    scopes: ['user:info'],
  },
  'MachineConfig.machineconfiguration.openshift.io': {
    metadata: {
      name: '50-motd',
      labels: { 'machineconfiguration.openshift.io/role': 'worker' },
      annotations: { 'machineconfiguration.openshift.io/generated-by-controller-version': '1.0' },
    },
    spec: {
      osImageURL: '',
      config: {
        ignition: { version: '3.2.0' },
        storage: { files: [{ path: '/etc/motd', mode: 420, contents: { source: 'data:,hello' } }] },
      },
      kernelArguments: ['quiet'],
      extensions: null,
      fips: false,
      kernelType: '',
    },
  },
  'MachineConfigPool.machineconfiguration.openshift.io': {
    spec: {
      machineConfigSelector: { matchLabels: { 'machineconfiguration.openshift.io/role': 'worker' } },
      nodeSelector: { matchLabels: { 'node-role.kubernetes.io/worker': '' } },
      paused: false,
      maxUnavailable: '50%',
      configuration: { name: 'rendered-worker-1', source: [{ kind: 'MachineConfig', name: '00-worker' }] },
    },
    status: {
      configuration: { name: 'rendered-worker-0' },
      conditions: [
        { type: 'Updated', status: 'False' },
        { type: 'Updating', status: 'True' },
        { type: 'Degraded', status: 'False' },
      ],
      machineCount: 3,
      readyMachineCount: 2,
      updatedMachineCount: 2,
      degradedMachineCount: 0,
    },
  },
  'KubeletConfig.machineconfiguration.openshift.io': {
    spec: {
      autoSizingReserved: true,
      logLevel: 4,
      machineConfigPoolSelector: { matchLabels: { custom: 'large' } },
      kubeletConfig: { maxPods: 100 },
      tlsSecurityProfile: { type: 'Intermediate', intermediate: {} },
    },
  },
  'ContainerRuntimeConfig.machineconfiguration.openshift.io': {
    spec: {
      machineConfigPoolSelector: { matchLabels: { custom: 'large' } },
      containerRuntimeConfig: { pidsLimit: 2048, logLevel: 'debug', logSizeMax: '8Ki', overlaySize: '8G' },
    },
  },
  'ControllerConfig.machineconfiguration.openshift.io': {
    spec: {
      clusterDNSIP: '172.30.0.10',
      cloudProviderConfig: '',
      kubeAPIServerServingCAData: 'YQ==',
      rootCAData: 'YQ==',
      images: {},
      osImageURL: '1.0',
      releaseImage: '1.0',
      ipFamilies: 'IPv4',
    },
  },
  CatalogSource: {
    spec: {
      sourceType: 'grpc',
      address: 'file:///var/lib/origin/catalogs/lab',
      displayName: 'Lab',
      publisher: 'Lab team',
      priority: 10,
      updateStrategy: { registryPoll: { interval: '30m' } },
    },
  },
  Subscription: {
    spec: {
      name: 'web',
      source: 'lab',
      sourceNamespace: 'openshift-marketplace',
      channel: 'stable',
      installPlanApproval: 'Manual',
      config: { env: [{ name: 'A', value: 'b' }] },
    },
  },
  InstallPlan: {
    spec: { clusterServiceVersionNames: ['web.v1.0.0'], approval: 'Manual', approved: false, generation: 1 },
  },
  ClusterServiceVersion: {
    spec: {
      displayName: 'Web',
      version: '1.0.0',
      minKubeVersion: '1.20.0',
      replaces: 'web.v0.9.0',
      installModes: [{ type: 'OwnNamespace', supported: true }],
      customresourcedefinitions: { owned: [{ name: 'webs.lab.example', version: 'v1', kind: 'Web' }] },
      install: {
        strategy: 'deployment',
        spec: {
          clusterPermissions: [
            { serviceAccountName: 'web', rules: [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }] },
          ],
          deployments: [
            {
              name: 'web',
              spec: {
                selector: { matchLabels: { app: 'web' } },
                template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
              },
            },
          ],
        },
      },
      webhookdefinitions: [
        {
          generateName: 'vwebs.lab.example',
          type: 'ValidatingAdmissionWebhook',
          deploymentName: 'web',
          containerPort: 443,
          sideEffects: 'None',
          admissionReviewVersions: ['v1'],
        },
      ],
    },
  },
  OperatorGroup: { spec: { targetNamespaces: ['shop'], serviceAccountName: 'installer' } },
  Operator: { metadata: { name: 'web.shop' } },
  OperatorCondition: {
    spec: {
      deployments: ['web'],
      serviceAccounts: ['web'],
      conditions: [
        {
          type: 'Upgradeable',
          status: 'False',
          reason: 'Busy',
          message: 'wait',
          lastTransitionTime: '2026-01-01T00:00:00Z',
        },
      ],
    },
  },
  CatalogPackage: {
    labels: { catalog: 'lab', 'catalog-namespace': 'openshift-marketplace' },
    priority: 10,
    manifest: { packageName: 'web', catalogSource: 'lab' },
  },
};
