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
};
