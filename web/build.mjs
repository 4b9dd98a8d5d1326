// Builds the page's script and style into a folder, web/dist unless another one is named.
import { build } from 'esbuild';

const outdir = process.argv[2] ?? 'dist';
await build({
  entryPoints: { page: 'src/main.tsx' },
  bundle: true,
  minify: true,
  format: 'iife',
  target: 'es2022',
  charset: 'utf8',
  legalComments: 'none',
  banner: { js: '/* With Preact, Preact Signals and fflate, MIT: (c) 2015 Jason Miller, (c) 2022 Preact Team, (c) 2023 Arjun Barrett */' },
  jsx: 'automatic',
  jsxImportSource: 'preact',
  outdir,
});
