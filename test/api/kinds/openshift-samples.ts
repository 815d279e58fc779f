/** As samples.ts, of the kinds of OpenShift's groups; keys are those of sampleNameOf. */
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
};
