import { mount } from 'svelte';
import App from './App.svelte';
import './app.css';

const theme = localStorage.getItem('berth.theme');
if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;

mount(App, { target: document.getElementById('app')! });
